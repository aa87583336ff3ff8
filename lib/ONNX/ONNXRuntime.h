//===- ONNXRuntime.h - Loads ONNX Runtime -----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The library of ONNX Runtime, its C API, and handles for its objects.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_ONNX_ONNXRUNTIME_H
#define MLBRIDGE_LIB_ONNX_ONNXRUNTIME_H

#include "MLCompilerBridge/Runners/ONNXModelRunner.h"

#include <onnxruntime_c_api.h>

namespace MLBridge::onnx {

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

/// While an object of this class exists, a failed allocation in its thread
/// throws an exception, which ONNX Runtime converts to an error. Otherwise, the
/// allocation would call the program's handler (std::new_handler), which ends
/// the process in LLVM's tools. The first object replaces the program's
/// handler. The new handler calls the old handler in all other cases.
class WithoutNewHandler {
public:
  WithoutNewHandler();
  ~WithoutNewHandler();
  WithoutNewHandler(const WithoutNewHandler &) = delete;
  WithoutNewHandler &operator=(const WithoutNewHandler &) = delete;
};

/// The loaded library and its environment. Any number of threads can use a
/// Runtime at the same time.
class Runtime {
public:
  /// Loads the library. Returns an Unsupported error if the library is not
  /// found or is too old.
  static Expected<std::shared_ptr<const Runtime>>
  open(const ONNXOptions &Options);

  const OrtApi &api() const { return *API; }
  OrtEnv *environment() const { return Environment.get(); }
  /// Returns a description of CPU memory. It is needed to create a tensor
  /// around a feature's memory.
  const OrtMemoryInfo *memory() const { return Memory.get(); }
  /// Returns the default allocator. It is valid while the library is loaded.
  OrtAllocator *allocator() const { return Allocator; }

  /// Returns a handle for the object that \p Make creates. \p Make has a
  /// parameter of type T** and returns an OrtStatus*.
  template <typename T, typename Function>
  Expected<Handle<T>> make(std::string_view What, ErrorCode Code,
                           Function Make) const {
    const WithoutNewHandler Guard;
    T *Made = nullptr;
    if (Error E = check(Make(&Made), What, Code))
      return E;
    return Handle<T>(Made, Release{API});
  }

  /// Converts \p Status to an Error, and releases \p Status. The error's
  /// message is "<What>: <the status's message>". The error's code is \p Code,
  /// unless the status implies a more precise code.
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
