//===- gRPCTraining.h - Training through gRPC -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Training through gRPC (paper, section 3.3): the compiler is the server, at
/// an address that a trainer, on this machine or another, connects to. Both
/// ends are Transports. In the component MLCompilerBridge::gRPC.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRAINING_GRPCTRAINING_H
#define MLCOMPILERBRIDGE_TRAINING_GRPCTRAINING_H

#include "MLCompilerBridge/Training/EnvironmentServer.h"
#include "MLCompilerBridge/Transport/gRPCTransport.h"

namespace MLBridge {

/// The compiler's end: listens at \p Spec from now on, and connect() waits for
/// a trainer. One at a time; others are refused in words. The spec is
/// `grpc://HOST:PORT`, where no HOST is this machine's loopback and PORT 0 one
/// that is free, or `grpc+unix:PATH`; the options are those of
/// openGRPCListener() and `announce=FILE`, to which the spec for the trainer is
/// written once it may connect. describe() says it as well.
Expected<std::unique_ptr<Transport>> listenForTrainer(std::string_view Spec);

/// Adds the schemes `grpc` and `grpc+unix` to \p Server, whose serve() then
/// listens for a trainer at such a spec. Its option `connect` is how long that
/// may take to come, `timeout` how long it may take to say something.
void addGRPC(EnvironmentServer &Server);

/// The trainer's end. A stream begins with a message of the compiler's.
std::unique_ptr<Transport> createGRPCTrainerTransport(std::string Address,
                                                      gRPCOptions Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRAINING_GRPCTRAINING_H
