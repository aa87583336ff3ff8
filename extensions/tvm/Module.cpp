//===- Module.cpp - MLBridge-tvm.so -------------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TVMModel.h"

#include "MLCompilerBridge/Extend/RunnerModule.h"

MLBRIDGE_RUNNER_MODULE(MLBridge::addTVM, nullptr)
