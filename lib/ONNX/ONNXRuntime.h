//===- ONNXRuntime.h - ONNX Runtime, found at run time ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The library of ONNX Runtime, its C API, and the handles of what it makes.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_ONNX_ONNXRUNTIME_H
#define MLBRIDGE_LIB_ONNX_ONNXRUNTIME_H

#include "MLCompilerBridge/Runners/ONNXModelRunner.h"

#include <onnxruntime_c_api.h>

namespace MLBridge::onnx {

/// Gives back what ONNX Runtime made.
struct Release {
  const OrtApi *API = nullptr;

  void operator()(OrtEnv *P) const { API->ReleaseEnv(P); }
  void operator()(OrtMemoryInfo *P) const { API->ReleaseMemoryInfo(P); }
  void operator()(OrtModelMetadata *P) const { API->ReleaseModelMetadata(P); }
  void operator()(OrtRunOptions *P) const { API->ReleaseRunOptions(P); }
  void operator()(OrtSession *P) const { API->ReleaseSession(P); }
  void operator()(OrtSessionOptions *P) const { API->ReleaseSessionOptions(P); }
  void operator()(OrtStatus *P) const { API->ReleaseStatus(P); }
  void operator()(OrtTensorTypeAndShapeInfo *P) const {
    API->ReleaseTensorTypeAndShapeInfo(P);
  }
  void operator()(OrtTypeInfo *P) const { API->ReleaseTypeInfo(P); }
  void operator()(OrtValue *P) const { API->ReleaseValue(P); }
};

template <typename T> using Handle = std::unique_ptr<T, Release>;

/// The library, loaded, and its environment. Used by any number of threads.
class Runtime {
public:
  /// Unsupported where there is none, or too old a one.
  static Expected<std::shared_ptr<const Runtime>>
  open(const ONNXOptions &Options);

  const OrtApi &api() const { return *API; }
  OrtEnv *environment() const { return Environment.get(); }
  /// Of plain memory.
  const OrtMemoryInfo *memory() const { return Memory.get(); }
  /// Lives as long as the library.
  OrtAllocator *allocator() const { return Allocator; }

  /// A handle for what \p Make, a function that takes a T** and gives a
  /// status, makes.
  template <typename T, typename Function>
  Expected<Handle<T>> make(std::string_view What, ErrorCode Code,
                           Function Make) const {
    T *Made = nullptr;
    if (Error E = check(Make(&Made), What, Code))
      return E;
    return Handle<T>(Made, Release{API});
  }

  /// What \p Status, which this takes, says: "<What>: <its message>". A code
  /// that says more than \p Code has its own.
  Error check(OrtStatus *Status, std::string_view What, ErrorCode Code) const {
    return Status ? describe(Status, What, Code) : Error::success();
  }

private:
  explicit Runtime(const OrtApi *API) : API(API) {}

  Error initialize();
  Error describe(OrtStatus *Status, std::string_view What,
                 ErrorCode Code) const;

  const OrtApi *API;
  Handle<OrtEnv> Environment;
  Handle<OrtMemoryInfo> Memory;
  OrtAllocator *Allocator = nullptr;
};

} // namespace MLBridge::onnx

#endif // MLBRIDGE_LIB_ONNX_ONNXRUNTIME_H
