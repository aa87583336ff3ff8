//===- Module.cpp - MLBridge-tf.so ----------------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/RunnerModule.h"
#include "MLCompilerBridge/Runners/TFModelRunner.h"

static void addRunners(MLBridge::RunnerFactory &Factory) {
  MLBridge::addTF(Factory);
}

MLBRIDGE_RUNNER_MODULE(addRunners, nullptr)
