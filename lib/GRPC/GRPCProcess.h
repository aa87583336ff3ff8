//===- GRPCProcess.h - Whether gRPC works in this process -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// checkProcess(): what gRPC takes for granted. Where that is missing it aborts
/// or hangs, so it is looked for before gRPC is used.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCPROCESS_H
#define MLBRIDGE_LIB_GRPC_GRPCPROCESS_H

#include "MLCompilerBridge/Error.h"

namespace MLBridge::GRPC {

/// Unsupported in a child of a process that used gRPC: the child has a copy of
/// gRPC's state and none of its threads, so whatever it asks waits for ever.
/// System where gRPC cannot open its descriptors, or has no address space for
/// its threads. Call this before each use of gRPC that may be the first.
Error checkProcess();

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCPROCESS_H
