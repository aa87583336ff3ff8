//===- main.c - A user of the installed C library -------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Makes a request to `none`, which must defer, and to each spec on the command
/// line. No model serves these specs, so the requests must time out.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge-C/MLCompilerBridge.h"

#include <stdio.h>

static bool endsIn(MLBridgeStatus Wanted, const char *Spec) {
  MLBridgeModelRunnerRef Runner;
  MLBridgeStatus Status = mlbridgeCreateModelRunner(Spec, &Runner);
  if (Status == MLBridgeStatusSuccess) {
    bool Reply;
    mlbridgeSetInt32(mlbridgeGetFeatures(Runner), "callee_size", 12);
    Status = mlbridgeEvaluateBool(Runner, &Reply);
    mlbridgeDisposeModelRunner(Runner);
  }
  printf("%s: %s\n", mlbridgeGetStatusName(Status),
         mlbridgeGetLastErrorMessage());
  return Status == Wanted;
}

int main(int argc, char **argv) {
  bool Right = endsIn(MLBridgeStatusDeferred, "none");
  for (int I = 1; I < argc; ++I)
    Right &= endsIn(MLBridgeStatusTimeout, argv[I]);
  return Right ? 0 : 1;
}
