//===- SharedMemoryTransport.h - Old path, kept until 1.0 -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_SHAREDMEMORYTRANSPORT_H
#define MLCOMPILERBRIDGE_SHAREDMEMORYTRANSPORT_H

#include "MLCompilerBridge/Transport/SharedMemoryTransport.h" // IWYU pragma: export

#endif // MLCOMPILERBRIDGE_SHAREDMEMORYTRANSPORT_H
