//===- GRPC.cpp - A user of the installed component gRPC ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Makes a gRPC request to an absent model, which must time out.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/gRPCModelRunner.h"

#include <cstdio>

using namespace MLBridge;

int main() {
  RunnerFactory Factory;
  addGRPC(Factory);
  auto Runner = Factory.create("grpc://127.0.0.1:1?connect=200ms");
  if (!Runner)
    return 1;
  (*Runner)->populateFeatures(std::pair{"callee_size", 12});
  Error E = (*Runner)->tryEvaluate<bool>().takeError();
  std::printf("%s\n", E.str().c_str());
  return E.code() == ErrorCode::Timeout ? 0 : 1;
}
