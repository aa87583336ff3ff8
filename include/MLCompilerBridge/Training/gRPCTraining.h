//===- gRPCTraining.h - Training through gRPC -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Training through gRPC (paper, section 3.1.1). The compiler is the server; a
/// trainer on this machine or another connects to its address. Both ends are
/// Transports. In the component MLCompilerBridge::gRPC.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRAINING_GRPCTRAINING_H
#define MLCOMPILERBRIDGE_TRAINING_GRPCTRAINING_H

#include "MLCompilerBridge/Training/EnvironmentServer.h"
#include "MLCompilerBridge/Transport/gRPCTransport.h"

namespace MLBridge {

/// The compiler's end. Listens at \p Spec from now on; connect() waits for a
/// trainer. It serves one trainer at a time and refuses others with a message.
///
/// The spec is `grpc://HOST:PORT` or `grpc+unix:PATH`. Without HOST it listens
/// on loopback; PORT 0 picks a free port. The options are those of
/// openGRPCListener(), and `announce=FILE`: once a trainer can connect, the
/// spec for the trainer is written to FILE. describe() contains that spec too.
Expected<std::unique_ptr<Transport>> listenForTrainer(std::string_view Spec);

/// Adds the schemes `grpc` and `grpc+unix` to \p Server: serve() then listens
/// for a trainer at such a spec. The option `connect` limits the wait for a
/// trainer, `timeout` the wait for each command.
void addGRPC(EnvironmentServer &Server);

/// The trainer's end. The compiler sends the first message of a stream.
std::unique_ptr<Transport> createGRPCTrainerTransport(std::string Address,
                                                      gRPCOptions Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRAINING_GRPCTRAINING_H
