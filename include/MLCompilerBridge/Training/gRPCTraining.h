//===- gRPCTraining.h - Training through gRPC -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implements training through gRPC. The compiler is the gRPC server, and a
/// trainer on this or another machine connects to it. Both ends are Transports.
/// This header belongs to the component MLCompilerBridge::gRPC.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRAINING_GRPCTRAINING_H
#define MLCOMPILERBRIDGE_TRAINING_GRPCTRAINING_H

#include "MLCompilerBridge/Training/EnvironmentServer.h"
#include "MLCompilerBridge/Transport/gRPCTransport.h"

namespace MLBridge {

/// Creates the compiler's end and starts to listen at \p Spec. The transport's
/// connect() waits for a trainer. The compiler serves one trainer at a time and
/// refuses other trainers with a message.
///
/// The spec is `grpc://HOST:PORT` or `grpc+unix:PATH`. An empty HOST means the
/// loopback address, and PORT 0 selects a free port. The spec can have the
/// options of openGRPCListener() and `announce=FILE`. With `announce=FILE`, the
/// compiler writes the spec for the trainer to FILE when a trainer can connect.
/// describe() also contains this spec. With `service=` and `method=`, the
/// trainer calls a unary method of the user's own service.
Expected<std::unique_ptr<Transport>> listenForTrainer(std::string_view Spec);

/// Adds the schemes `grpc` and `grpc+unix` to \p Server. With these schemes,
/// serve() listens for a trainer. The option `connect` limits the wait for a
/// trainer. The option `timeout` limits the wait for each command.
void addGRPC(EnvironmentServer &Server);

/// Creates the trainer's end. The compiler sends the first message of a
/// session.
std::unique_ptr<Transport> createGRPCTrainerTransport(std::string Address,
                                                      gRPCOptions Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRAINING_GRPCTRAINING_H
