//===- ONNX.cpp - A user of the installed component ONNX ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Makes a request to a model whose runtime is missing. The error must report
/// this.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/ONNXModelRunner.h"

#include <cstdio>

using namespace MLBridge;

int main(int, char **Arguments) {
  RunnerFactory Factory;
  addONNX(Factory);
  auto Runner = Factory.create("onnx:" + std::string(Arguments[1]));
  if (!Runner)
    return 1;
  (*Runner)->populateFeatures(std::pair{"callee_size", 12});
  Error E = (*Runner)->tryEvaluate<bool>().takeError();
  std::printf("%s\n", E.str().c_str());
  return E.code() == ErrorCode::Unsupported ? 0 : 1;
}
