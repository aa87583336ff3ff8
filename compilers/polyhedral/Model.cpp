//===- Model.cpp - Asks a model about a kernel ----------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// One request for each kernel.
///
//===----------------------------------------------------------------------===//

#include "Model.h"
#include "MLCompilerBridge-C/MLCompilerBridge.h"

namespace MLBridge::polyhedral {

/// The maximum time for a model to start. The plug-ins of compilers use the
/// same time.
static constexpr int64_t ConnectTimeout = 5'000'000'000; // ns

static void setMatrix(MLBridgeFeatureSetRef Features, const char *Name,
                      MLBridgeElementType Type, const void *Data,
                      std::size_t Rows, std::size_t Elements) {
  const int64_t Extents[] = {static_cast<int64_t>(Rows),
                             static_cast<int64_t>(Elements / Rows)};
  mlbridgeSetTensor(Features, Name, Type, Data, Extents, 2);
}

int askModel(const std::string &Spec, const Question &Q, std::string &Warning) {
  MLBridgeRunnerFactoryRef Factory = nullptr;
  MLBridgeModelRunnerRef Runner = nullptr;
  int32_t Reply = 0;
  MLBridgeStatus Status = mlbridgeCreateRunnerFactory(&Factory);
  if (Status == MLBridgeStatusSuccess)
    Status = mlbridgeSetConnectTimeout(Factory, ConnectTimeout);
  if (Status == MLBridgeStatusSuccess)
    Status =
        mlbridgeCreateModelRunnerWithFactory(Factory, Spec.c_str(), &Runner);
  if (Status == MLBridgeStatusSuccess) {
    MLBridgeFeatureSetRef Features = mlbridgeGetFeatures(Runner);
    setMatrix(Features, "candidates", MLBridgeElementInt32, Q.Candidates.data(),
              Q.Count, Q.Candidates.size());
    setMatrix(Features, "candidate_features", MLBridgeElementFloat,
              Q.Features.data(), Q.Count, Q.Features.size());
    Status = mlbridgeEvaluateInt32(Runner, &Reply);
  }
  if (Status == MLBridgeStatusSuccess)
    Status = mlbridgeFlush(Runner);
  if (Status != MLBridgeStatusSuccess && Status != MLBridgeStatusDeferred)
    Warning = std::string(mlbridgeGetStatusName(Status)) + ": " +
              mlbridgeGetLastErrorMessage();
  mlbridgeDisposeModelRunner(Runner);
  mlbridgeDisposeRunnerFactory(Factory);
  if (Status != MLBridgeStatusSuccess)
    return 0;
  if (Reply >= 0 && static_cast<std::size_t>(Reply) < Q.Count)
    return Reply;
  Warning = Spec + ": expected the index of one of " + std::to_string(Q.Count) +
            " candidates, found " + std::to_string(Reply);
  return 0;
}

} // namespace MLBridge::polyhedral
