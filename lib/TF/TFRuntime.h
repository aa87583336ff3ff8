//===- TFRuntime.h - Loads TensorFlow's C API -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The library of TensorFlow, the functions of its C API that
/// ML-Compiler-Bridge uses, and handles for its objects.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TF_TFRUNTIME_H
#define MLBRIDGE_LIB_TF_TFRUNTIME_H

#include "MLCompilerBridge/Runners/TFModelRunner.h"

#include <tensorflow/c/c_api.h>

namespace MLBridge::tf {

// All functions that are used. Their names lack the prefix "TF_".
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

/// The loaded library. It is never unloaded. Any number of threads can use a
/// Runtime at the same time.
class Runtime {
public:
  /// Loads the library. Returns an Unsupported error if the library is not
  /// found or lacks one of these functions.
  static Expected<std::shared_ptr<const Runtime>>
  open(const TFOptions &Options);

  // NOLINTNEXTLINE(bugprone-macro-parentheses): NAME is declared here.
#define MLBRIDGE_TF_MEMBER(NAME) decltype(&TF_##NAME) NAME = nullptr;
  MLBRIDGE_TF_FUNCTIONS(MLBRIDGE_TF_MEMBER)
#undef MLBRIDGE_TF_MEMBER

  /// Converts \p Status to an Error. The error's message is "<What>: <the
  /// status's message>". The error's code is \p Code, unless the status implies
  /// a more precise code.
  Error check(const TF_Status *Status, const std::string &What,
              ErrorCode Code) const;
};

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
