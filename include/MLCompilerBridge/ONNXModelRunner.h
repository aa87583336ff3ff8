//===- ONNXModelRunner.h - Old path, kept until 1.0 -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_ONNXMODELRUNNER_H
#define MLCOMPILERBRIDGE_ONNXMODELRUNNER_H

#include "MLCompilerBridge/Runners/ONNXModelRunner.h" // IWYU pragma: export

#endif // MLCOMPILERBRIDGE_ONNXMODELRUNNER_H
