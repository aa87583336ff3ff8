//===- TFRuntime.h - TensorFlow's C API, found at run time ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The library of TensorFlow, the functions of its C API that are called here,
/// and the handles of what they make.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TF_TFRUNTIME_H
#define MLBRIDGE_LIB_TF_TFRUNTIME_H

#include "MLCompilerBridge/Runners/TFModelRunner.h"

#include <tensorflow/c/c_api.h>

namespace MLBridge::tf {

// All functions that are looked for, by their names without "TF_".
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

/// The library, loaded for good. Used by any number of threads.
class Runtime {
public:
  /// Unsupported where there is none, or one without these functions.
  static Expected<std::shared_ptr<const Runtime>>
  open(const TFOptions &Options);

#define MLBRIDGE_TF_MEMBER(NAME) decltype(&TF_##NAME) NAME = nullptr;
  MLBRIDGE_TF_FUNCTIONS(MLBRIDGE_TF_MEMBER)
#undef MLBRIDGE_TF_MEMBER

  /// What \p Status says: "<What>: <its message>". A code that says more than
  /// \p Code has its own.
  Error check(const TF_Status *Status, const std::string &What,
              ErrorCode Code) const;
};

/// Gives back what TensorFlow made.
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
