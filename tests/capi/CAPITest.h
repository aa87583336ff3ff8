//===- CAPITest.h - Helpers for tests of the C API --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Owning handles of the C API, and runners whose replies come from a callback.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_CAPI_CAPITEST_H
#define MLBRIDGE_TESTS_CAPI_CAPITEST_H

#include "MLCompilerBridge-C/MLCompilerBridge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>

namespace MLBridge::test {

template <auto Dispose> struct Disposer {
  template <typename T> void operator()(T *Handle) const { Dispose(Handle); }
};
using RunnerHandle =
    std::unique_ptr<std::remove_pointer_t<MLBridgeModelRunnerRef>,
                    Disposer<mlbridgeDisposeModelRunner>>;
using FactoryHandle =
    std::unique_ptr<std::remove_pointer_t<MLBridgeRunnerFactoryRef>,
                    Disposer<mlbridgeDisposeRunnerFactory>>;
using EnvironmentHandle =
    std::unique_ptr<std::remove_pointer_t<MLBridgeEnvironmentRef>,
                    Disposer<mlbridgeDisposeEnvironment>>;

inline std::string lastMessage() { return mlbridgeGetLastErrorMessage(); }

/// Returns the runner for \p Spec. On failure, returns null, and the test
/// fails.
inline RunnerHandle makeRunner(const std::string &Spec) {
  MLBridgeModelRunnerRef Made = nullptr;
  EXPECT_EQ(mlbridgeCreateModelRunner(Spec.c_str(), &Made),
            MLBridgeStatusSuccess)
      << lastMessage();
  return RunnerHandle(Made);
}

/// Returns a runner whose replies come from \p Reply, which must outlive the
/// runner.
using ReplyFunction = std::function<MLBridgeStatus(
    MLBridgeAdviceRef Request, int64_t Nanoseconds, MLBridgeFeatureSetRef)>;
inline RunnerHandle makeRunner(ReplyFunction &Reply) {
  MLBridgeRunnerFactoryRef Made = nullptr;
  EXPECT_EQ(mlbridgeCreateRunnerFactory(&Made), MLBridgeStatusSuccess);
  FactoryHandle Owner(Made);
  MLBridgeRunnerCallbacks Callbacks = {};
  Callbacks.Size = sizeof(Callbacks);
  Callbacks.Evaluate = [](void *User, MLBridgeAdviceRef Request,
                          int64_t Nanoseconds, MLBridgeFeatureSetRef Out) {
    return (*static_cast<ReplyFunction *>(User))(Request, Nanoseconds, Out);
  };
  EXPECT_EQ(mlbridgeAddScheme(Made, "answer", nullptr, &Callbacks, &Reply),
            MLBridgeStatusSuccess)
      << lastMessage();
  MLBridgeModelRunnerRef Result = nullptr;
  EXPECT_EQ(mlbridgeCreateModelRunnerWithFactory(Made, "answer", &Result),
            MLBridgeStatusSuccess)
      << lastMessage();
  return RunnerHandle(Result);
}

/// A ReplyFunction that replies with the tensors of the request.
inline MLBridgeStatus echo(MLBridgeAdviceRef Request, int64_t,
                           MLBridgeFeatureSetRef Reply) {
  for (size_t I = 0; I != mlbridgeGetNumTensors(Request); ++I) {
    MLBridgeTensor Tensor;
    MLBridgeStatus Status = mlbridgeGetTensorAt(Request, I, &Tensor);
    if (Status == MLBridgeStatusSuccess)
      Status = mlbridgeCopyTensor(Reply, Tensor.Name, Request, Tensor.Name);
    if (Status != MLBridgeStatusSuccess)
      return Status;
  }
  return MLBridgeStatusSuccess;
}

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_CAPI_CAPITEST_H
