//===- Schemes.cpp - What specs may name in C
//-------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "C/Schemes.h"

#ifdef MLBRIDGE_HAS_ONNX
#include "MLCompilerBridge/Runners/ONNXModelRunner.h"
#endif

using namespace MLBridge;

RunnerFactory C::makeRunnerFactory() {
  // A line for each component that brings no dependency of its own; the others
  // are modules.
  RunnerFactory Factory;
#ifdef MLBRIDGE_HAS_ONNX
  addONNX(Factory);
#endif
  return Factory;
}

EnvironmentServer C::makeEnvironmentServer() { return {}; }
