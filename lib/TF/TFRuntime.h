//===- TFRuntime.h - Loads TensorFlow's C API -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The library of TensorFlow, the functions of its C API that are used here,
/// and handles for its objects.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TF_TFRUNTIME_H
#define MLBRIDGE_LIB_TF_TFRUNTIME_H

#include "MLCompilerBridge/Runners/TFModelRunner.h"

#include <tensorflow/c/c_api.h>

namespace MLBridge::tf {

// All functions that are used, by their names without "TF_".
#define MLBRIDGE_TF_FUNCTIONS(X)                                               \
  X(AllocateTensor)                                                            \
  X(CloseSession)                                                              \
  X(DeleteBuffer)                                                              \
  X(DeleteGraph)                                                               \
  X(DeleteSession)                                                             \
  X(DeleteSessionOptions)                                                      \
  X(DeleteStatus)                                                              \
  X(DeleteTensor)                                                              \
  X(Dim)                                                                       \
  X(GetCode)                                                                   \
  X(GraphOperationByName)                                                      \
  X(LoadSessionFromSavedModel)                                                 \
  X(Message)                                                                   \
  X(NewBuffer)                                                                 \
  X(NewGraph)                                                                  \
  X(NewSessionOptions)                                                         \
  X(NewStatus)                                                                 \
  X(NumDims)                                                                   \
  X(SessionRun)                                                                \
  X(SetConfig)                                                                 \
  X(TensorByteSize)                                                            \
  X(TensorData)                                                                \
  X(TensorType)                                                                \
  X(Version)

/// The loaded library, which is never unloaded. Any number of threads can use
/// it.
class Runtime {
public:
  /// Unsupported if the library is not found or lacks these functions.
  static Expected<std::shared_ptr<const Runtime>>
  open(const TFOptions &Options);

#define MLBRIDGE_TF_MEMBER(NAME) decltype(&TF_##NAME) NAME = nullptr;
  MLBRIDGE_TF_FUNCTIONS(MLBRIDGE_TF_MEMBER)
#undef MLBRIDGE_TF_MEMBER

  /// Converts \p Status: "<What>: <its message>". A status code that is more
  /// precise than \p Code replaces it.
  Error check(const TF_Status *Status, const std::string &What,
              ErrorCode Code) const;
};

/// Releases objects of TensorFlow.
struct Release {
  const Runtime *API = nullptr;

  void operator()(TF_Buffer *P) const { API->DeleteBuffer(P); }
  void operator()(TF_Graph *P) const { API->DeleteGraph(P); }
  void operator()(TF_Session *P) const;
  void operator()(TF_SessionOptions *P) const { API->DeleteSessionOptions(P); }
  void operator()(TF_Status *P) const { API->DeleteStatus(P); }
  void operator()(TF_Tensor *P) const { API->DeleteTensor(P); }
};

template <typename T> using Handle = std::unique_ptr<T, Release>;

} // namespace MLBridge::tf

#endif // MLBRIDGE_LIB_TF_TFRUNTIME_H
