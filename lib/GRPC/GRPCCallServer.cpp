//===- GRPCCallServer.cpp - A gRPC server and its thread ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCCallServer.h"

#include "GRPC/GRPCClock.h"
#include "GRPC/GRPCCredentials.h"
#include "GRPC/GRPCProtocol.h"
#include "Support/PrintableText.h"

#include <grpcpp/server_builder.h>

using namespace MLBridge;
using namespace MLBridge::GRPC;

/// The time limit for a peer to acknowledge data.
static constexpr std::chrono::seconds ServerKeepaliveTimeout(20);

static void setServerArguments(grpc::ServerBuilder &Builder,
                               const CallServer::Options &Settings) {
  grpc::ChannelArguments Common;
  setCommonArguments(Common, Settings.MaxMessage);
  const grpc_channel_args All = Common.c_channel_args();
  for (std::size_t I = 0; I < All.num_args; ++I)
    if (All.args[I].type == GRPC_ARG_INTEGER)
      Builder.AddChannelArgument(All.args[I].key, All.args[I].value.integer);
  Builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             millisOf(Settings.PeerTimeout));
  // Accept frequent pings from compilers, and send pings to compilers.
  Builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  Builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 100);
  Builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  Builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             millisOf(ServerKeepaliveTimeout));
  Builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
}

Expected<std::unique_ptr<CallServer>>
CallServer::listen(const std::string &Address, const Options &Settings,
                   Receive OnCall) {
  auto Credentials = makeServerCredentials(Settings.Credentials);
  if (!Credentials)
    return Credentials.takeError();
  Expected<std::unique_ptr<Acceptor>> Connections =
      Acceptor::listen(Address, ServerKeepaliveTimeout);
  if (!Connections)
    return Connections.takeError();
  std::unique_ptr<CallServer> Made(new CallServer(std::move(OnCall)));
  Made->Connections = std::move(*Connections);
  Made->Refusals.emplace(
      *Credentials,
      grpc::Status(grpc::StatusCode::UNAVAILABLE,
                   "the model side has no descriptors for more connections "
                   "(ulimit -n); try again later"));
  grpc::ServerBuilder Builder;
  setServerArguments(Builder, Settings);
  Made->Injector = Builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      *Credentials);
  Builder.RegisterAsyncGenericService(&Made->Service);
  Made->Queue = Builder.AddCompletionQueue();
  Made->Server = Builder.BuildAndStart();
  if (!Made->Server)
    return Error(ErrorCode::System,
                 "cannot start a gRPC server for " + printable(Address) +
                     " (for details, set GRPC_VERBOSITY=debug)");
  Made->awaitCall();
  Made->Thread = std::thread([S = Made.get()] { S->run(); });
  Made->Connections->start({[S = Made.get()](posix::UniqueFD Connection) {
                              S->serve(std::move(Connection));
                            },
                            [S = Made.get()](posix::UniqueFD Connection) {
                              S->Refusals->take(std::move(Connection));
                            }});
  return Made;
}

void CallServer::serve(posix::UniqueFD Connection) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters Given;
  Given.fd = Connection.release();
  Injector->HandleNewConnection(&Given);
}

CallServer::~CallServer() {
  if (!Queue)
    return;
  Connections->stop();
  if (!Thread.joinable())
    Thread = std::thread([this] { run(); });
  {
    std::scoped_lock Lock(Mutex);
    IsStopping = true;
  }
  // Shutdown() returns after the last call has ended.
  if (Server)
    Server->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
  Queue->Shutdown();
  Thread.join();
}

void CallServer::run() {
  void *Tag;
  bool Ok;
  while (Queue->Next(&Tag, &Ok))
    static_cast<ServerCall::Tag *>(Tag)->complete(Ok);
}

void CallServer::awaitCall() {
  std::make_shared<ServerCall>(*this)->await(Service, *Queue);
}

void CallServer::handleCall(std::shared_ptr<ServerCall> Call) {
  {
    std::scoped_lock Lock(Mutex);
    if (IsStopping)
      return;
    awaitCall();
  }
  const std::string Version = Call->metadata(Metadata::Protocol, {});
  if (!Version.empty() && Version != std::to_string(ProtocolVersion))
    return Call->finish({grpc::StatusCode::FAILED_PRECONDITION,
                         versionRefusal(ProtocolVersion, Version)});
  OnCall(Call);
}
