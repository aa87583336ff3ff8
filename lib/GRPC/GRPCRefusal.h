//===- GRPCRefusal.h - Connections that there is no room for ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RefusingServer: answers every call on the connections that it is given with
/// a status that says why there is no session. It is a gRPC server of its own,
/// since a call does not tell on which connection it has come.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCREFUSAL_H
#define MLBRIDGE_LIB_GRPC_GRPCREFUSAL_H

#include "Support/Posix.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <memory>

namespace MLBridge::GRPC {

/// Used by one thread at a time.
class RefusingServer final : grpc::CallbackGenericService {
public:
  RefusingServer(std::shared_ptr<grpc::ServerCredentials> Credentials,
                 grpc::Status Why)
      : Credentials(std::move(Credentials)), Why(std::move(Why)) {}
  ~RefusingServer() override;

  /// Starts the server with its first connection. The server ends each
  /// connection after a moment, if its peer does not.
  void take(posix::UniqueFD Connection);

private:
  bool start();
  grpc::ServerGenericBidiReactor *
  CreateReactor(grpc::GenericCallbackServerContext *) override;

  std::shared_ptr<grpc::ServerCredentials> Credentials;
  grpc::Status Why;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> Connections;
  std::unique_ptr<grpc::Server> Server;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCREFUSAL_H
