//===- gRPCModelRunner.h - Old path, kept until 1.0 -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_GRPCMODELRUNNER_H
#define MLCOMPILERBRIDGE_GRPCMODELRUNNER_H

#include "MLCompilerBridge/Runners/gRPCModelRunner.h" // IWYU pragma: export

#endif // MLCOMPILERBRIDGE_GRPCMODELRUNNER_H
