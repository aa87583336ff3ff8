//===- GRPCRefusal.cpp - Refuses connections over the limit ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCRefusal.h"

#include <utility>

using namespace MLBridge;
using namespace MLBridge::GRPC;

RefusingServer::~RefusingServer() {
  if (Server)
    Server->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
}

bool RefusingServer::start() {
  grpc::ServerBuilder Builder;
  // Close connections after 1 s. By default, gRPC never closes a connection
  // that has no calls.
  Builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, 1000);
  Builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, 1000);
  Builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 1000);
  Connections = Builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      Credentials);
  Builder.RegisterCallbackGenericService(this);
  Server = Builder.BuildAndStart();
  return Server != nullptr;
}

void RefusingServer::take(posix::UniqueFD Connection) {
  if (!Server && !start())
    return;
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters Given;
  Given.fd = Connection.release();
  Connections->HandleNewConnection(&Given);
}

grpc::ServerGenericBidiReactor *
RefusingServer::CreateReactor(grpc::GenericCallbackServerContext *) {
  class Refusal final : public grpc::ServerGenericBidiReactor {
  public:
    explicit Refusal(const grpc::Status &Why) { Finish(Why); }
    void OnDone() override { delete this; }
  };
  return new Refusal(Why);
}
