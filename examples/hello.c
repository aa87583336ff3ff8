//===- hello.c - Asks a model whether to inline, in C ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Run `.venv/bin/python examples/hello.py`, then this program:
//   build/release/examples/hello-c [SPEC]
// SPEC is fallback|pipe:/tmp/hello by default. After the first failure,
// `fallback|` sends no more requests, so later calls do not wait for a missing
// model.
#include "MLCompilerBridge-C/MLCompilerBridge.h"

#include <stdio.h>

static bool heuristic(int CalleeSize) { return CalleeSize < 5; }

static bool shouldInline(MLBridgeModelRunnerRef Model, int CalleeSize) {
  float Embedding[300];
  for (int I = 0; I < 300; ++I)
    Embedding[I] = 1.0f / (float)CalleeSize;

  MLBridgeFeatureSetRef Features = mlbridgeGetFeatures(Model);
  mlbridgeSetInt32(Features, "callee_size", CalleeSize);
  mlbridgeBorrowFloatVector(Features, "embedding", Embedding, 300);
  bool Reply;
  MLBridgeStatus Status = mlbridgeEvaluateBool(Model, &Reply);
  if (Status == MLBridgeStatusSuccess)
    return Reply;
  fprintf(stderr, "hello: %s: %s\n", mlbridgeGetStatusName(Status),
          mlbridgeGetLastErrorMessage());
  return heuristic(CalleeSize);
}

int main(int argc, char **argv) {
  MLBridgeModelRunnerRef Model;
  const char *Spec = argc > 1 ? argv[1] : "fallback|pipe:/tmp/hello";
  if (mlbridgeCreateModelRunner(Spec, &Model) != MLBridgeStatusSuccess) {
    fprintf(stderr, "hello: %s\n", mlbridgeGetLastErrorMessage());
    return 1;
  }
  const int Sizes[] = {3, 12, 500};
  for (int I = 0; I < 3; ++I)
    printf("callee of size %3d: inline? %s\n", Sizes[I],
           shouldInline(Model, Sizes[I]) ? "yes" : "no");
  mlbridgeDisposeModelRunner(Model);
  return 0;
}
