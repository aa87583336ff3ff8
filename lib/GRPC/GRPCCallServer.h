//===- GRPCCallServer.h - A gRPC server and its thread ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// CallServer: a gRPC server at an address, and the thread that handles its
/// calls.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCCALLSERVER_H
#define MLBRIDGE_LIB_GRPC_GRPCCALLSERVER_H

#include "GRPC/GRPCAcceptor.h"
#include "GRPC/GRPCRefusal.h"
#include "GRPC/GRPCServerCall.h"
#include "MLCompilerBridge/Transport/gRPCTransport.h"

#include <functional>
#include <grpcpp/server.h>
#include <thread>

namespace MLBridge::GRPC {

class CallServer final : public ServerCall::Owner {
public:
  struct Options {
    std::size_t MaxMessage;
    /// How long a peer may take until it speaks HTTP/2 (and TLS).
    Duration PeerTimeout;
    gRPCCredentials Credentials;
  };
  /// Called by gRPC's thread.
  using Receive = std::function<void(const std::shared_ptr<ServerCall> &)>;

  /// Listens at \p Address (`host:port` or `unix:PATH`). Call checkProcess()
  /// before.
  static Expected<std::unique_ptr<CallServer>>
  listen(const std::string &Address, const Options &Wishes, Receive Received);
  /// Ends all calls. Their owners let go of them before. Not in a forked
  /// child, where the threads are missing: abandon() it there.
  ~CallServer();

  /// Where it listens, with the port that was picked for port 0.
  const std::string &address() const { return Connections->address(); }

private:
  explicit CallServer(Receive Received) : Received(std::move(Received)) {}
  void run();
  void serve(posix::UniqueFD Connection);
  void awaitCall();
  void hasArrived(std::shared_ptr<ServerCall> Call) override;

  Receive Received;
  std::unique_ptr<Acceptor> Connections;
  /// For connections that there is no room for.
  std::optional<RefusingServer> Refusals;
  grpc::AsyncGenericService Service;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> Entry;
  std::unique_ptr<grpc::ServerCompletionQueue> Queue;
  std::unique_ptr<grpc::Server> Server;
  std::thread Thread;
  /// From when on no call is waited for or taken in.
  std::mutex Mutex;
  bool IsStopping = false;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCCALLSERVER_H
