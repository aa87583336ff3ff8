//===- environment.c - A compiler in C that a trainer drives --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The environment of docs/reference/c-api.md. It has three loops, and an
/// action unrolls one of them by a positive factor. tests/python/test_envs.py
/// trains on it.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge-C/MLCompilerBridge.h"

#include <stdio.h>
#include <stdlib.h>

struct Compiler {
  int Left;
  int Last;
};

static MLBridgeStatus reset(void *User, MLBridgeEnvironmentRef Env,
                            MLBridgeFeatureSetRef Observation) {
  struct Compiler *Self = User;
  (void)Env;
  Self->Left = 3;
  return mlbridgeSetInt32(Observation, "left", Self->Left);
}

static MLBridgeStatus step(void *User, MLBridgeEnvironmentRef Env,
                           MLBridgeAdviceRef Action,
                           MLBridgeFeatureSetRef Observation) {
  struct Compiler *Self = User;
  int32_t Unroll;
  MLBridgeStatus Status = mlbridgeGetInt32(Action, NULL, &Unroll);
  if (Status != MLBridgeStatusSuccess)
    return Status;
  if (Unroll < 1)
    return mlbridgeFail(MLBridgeStatusModel,
                        "no loop can be unrolled by this factor");
  Self->Last = Unroll;
  if (--Self->Left == 0)
    mlbridgeSetDone(Env);
  return mlbridgeSetInt32(Observation, "left", Self->Left);
}

static double reward(void *User) { return ((struct Compiler *)User)->Last; }

int main(int argc, char **argv) {
  const MLBridgeEnvironmentCallbacks Callbacks = {sizeof(Callbacks), reset,
                                                  step, reward};
  struct Compiler Compiler = {0, 0};
  const char *Spec = argc > 1 ? argv[1] : getenv("MLBRIDGE_SPEC");
  MLBridgeEnvironmentRef Env;
  MLBridgeStatus Status =
      mlbridgeCreateEnvironment(&Callbacks, &Compiler, &Env);
  if (Status == MLBridgeStatusSuccess) {
    Status = mlbridgeServeEnvironment(Env, Spec);
    mlbridgeDisposeEnvironment(Env);
  }
  if (Status == MLBridgeStatusSuccess)
    return 0;
  fprintf(stderr, "environment: %s: %s\n", mlbridgeGetStatusName(Status),
          mlbridgeGetLastErrorMessage());
  return 1;
}
