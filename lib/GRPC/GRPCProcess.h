//===- GRPCProcess.h - Checks that gRPC can work ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// checkProcess(): checks the conditions without which gRPC would abort or
/// hang.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCPROCESS_H
#define MLBRIDGE_LIB_GRPC_GRPCPROCESS_H

#include "MLCompilerBridge/Error.h"

namespace MLBridge::GRPC {

/// Checks that gRPC works in this process. Call this function before each use
/// of gRPC that may be the first one in the process.
///
/// Returns an Unsupported error in a forked child of a process that used gRPC.
/// A forked child has a copy of gRPC's state but lacks its threads, so every
/// call would hang. Returns a System error if gRPC cannot open its descriptors,
/// start its threads or reserve their address space.
Error checkProcess();

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCPROCESS_H
