//===- ONNXModule.cpp - MLBridge-onnx.so ----------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A module that adds the scheme `onnx` to programs that are linked without it.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/RunnerModule.h"
#include "MLCompilerBridge/Runners/ONNXModelRunner.h"

static void addRunners(MLBridge::RunnerFactory &Factory) {
  MLBridge::addONNX(Factory);
}

MLBRIDGE_RUNNER_MODULE(addRunners, nullptr)
