//===- Schemes.cpp - The schemes of the C library -------------------------===//
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
  // Add the components that have no dependencies. The other components are
  // modules.
  RunnerFactory Factory;
#ifdef MLBRIDGE_HAS_ONNX
  addONNX(Factory);
#endif
  return Factory;
}

EnvironmentServer C::makeEnvironmentServer() { return {}; }
