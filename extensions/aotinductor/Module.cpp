//===- Module.cpp - MLBridge-aoti.so ------------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AOTInductorModel.h"

#include "MLCompilerBridge/Extend/RunnerModule.h"

MLBRIDGE_RUNNER_MODULE(MLBridge::addAOTInductor, nullptr)
