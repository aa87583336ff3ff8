//===- Module.cpp - MLBridge-grpc.so --------------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/RunnerModule.h"
#include "MLCompilerBridge/Runners/gRPCModelRunner.h"
#include "MLCompilerBridge/Training/gRPCTraining.h"

MLBRIDGE_RUNNER_MODULE(MLBridge::addGRPC, MLBridge::addGRPC)
