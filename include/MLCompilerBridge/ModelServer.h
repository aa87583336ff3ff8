//===- ModelServer.h - Old path, kept until 1.0 -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_MODELSERVER_H
#define MLCOMPILERBRIDGE_MODELSERVER_H

#include "MLCompilerBridge/Transport/ModelServer.h" // IWYU pragma: export

#endif // MLCOMPILERBRIDGE_MODELSERVER_H
