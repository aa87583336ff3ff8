//===- GRPCRefusal.h - Refuses connections over the limit -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RefusingServer: refuses every call on its connections, with a status that
/// explains why. It is a separate gRPC server because the main server cannot
/// find out from a call which connection the call uses.
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

/// At most one thread at a time may use a RefusingServer.
class RefusingServer final : grpc::CallbackGenericService {
public:
  RefusingServer(std::shared_ptr<grpc::ServerCredentials> Credentials,
                 grpc::Status Why)
      : Credentials(std::move(Credentials)), Why(std::move(Why)) {}
  ~RefusingServer() override;

  /// Serves \p Connection. Starts the server if necessary. The server closes
  /// each connection after about 1 s, unless the peer closes it earlier.
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
