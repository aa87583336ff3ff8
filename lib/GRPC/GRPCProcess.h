//===- GRPCProcess.h - Checks that gRPC can work ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// checkProcess(): checks the conditions without which gRPC aborts or hangs.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCPROCESS_H
#define MLBRIDGE_LIB_GRPC_GRPCPROCESS_H

#include "MLCompilerBridge/Error.h"

namespace MLBridge::GRPC {

/// Unsupported in a forked child of a process that used gRPC: the child has a
/// copy of gRPC's state but not its threads, so every call would hang. System
/// if gRPC cannot open its descriptors or start its threads, or has no address
/// space for them. Call this before each use of gRPC that may be the first.
Error checkProcess();

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCPROCESS_H
