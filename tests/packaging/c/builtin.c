//===- builtin.c - A model that is linked into a tool in C ----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Makes a request to a model that mlbridge_add_aot_model() has linked into
/// this program.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge-C/MLCompilerBridge.h"
#include "several.h"

#include <stdio.h>

static MLBridgeStatus ask(MLBridgeModelRunnerRef Runner, bool *Decision) {
  const float Sizes[6] = {1, 2, 4, 8, 16, 32};
  const bool Flags[6] = {true, false, true, false, true, true};
  MLBridgeFeatureSetRef Features = mlbridgeGetFeatures(Runner);
  mlbridgeSetInt64(Features, "count", 4);
  mlbridgeSetDouble(Features, "weight", 0.5);
  mlbridgeSetFloatVector(Features, "sizes", Sizes, 6);
  mlbridgeSetBoolVector(Features, "flags", Flags, 6);
  return mlbridgeEvaluateBool(Runner, Decision);
}

int main(void) {
  MLBridgeRunnerFactoryRef Factory = NULL;
  MLBridgeModelRunnerRef Runner = NULL;
  bool Decision = false;
  const bool Succeeded =
      mlbridgeCreateRunnerFactory(&Factory) == MLBridgeStatusSuccess &&
      mlbridgeAddBuiltinModel(Factory, &mlbridge_aot_model_several) ==
          MLBridgeStatusSuccess &&
      mlbridgeCreateModelRunnerWithFactory(Factory,
                                           "builtin:several?output=decision",
                                           &Runner) == MLBridgeStatusSuccess &&
      ask(Runner, &Decision) == MLBridgeStatusSuccess;
  mlbridgeDisposeModelRunner(Runner);
  mlbridgeDisposeRunnerFactory(Factory);
  if (!Succeeded)
    fprintf(stderr, "%s\n", mlbridgeGetLastErrorMessage());
  return Succeeded && Decision ? 0 : 1;
}
