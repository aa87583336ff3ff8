//===- GRPCCallServer.h - A gRPC server and its thread ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// CallServer: a gRPC server at an address, with the thread that handles its
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
    /// How long a peer may take for the handshakes of HTTP/2 and TLS.
    Duration PeerTimeout;
    gRPCCredentials Credentials;
  };
  /// A handler of new calls; called by the server's thread.
  using Receive = std::function<void(const std::shared_ptr<ServerCall> &)>;

  /// Listens at \p Address (`host:port` or `unix:PATH`). Call checkProcess()
  /// first. Errors: System if it cannot listen; those of
  /// makeServerCredentials().
  static Expected<std::unique_ptr<CallServer>>
  listen(const std::string &Address, const Options &Settings, Receive OnCall);
  /// Ends all calls; blocks until their owners have released them. Must not run
  /// in a forked child, which lacks the threads: use abandon() there.
  ~CallServer();

  /// The address, with the actual port in place of port 0.
  const std::string &address() const { return Connections->address(); }

private:
  explicit CallServer(Receive OnCall) : OnCall(std::move(OnCall)) {}
  void run();
  void serve(posix::UniqueFD Connection);
  void awaitCall();
  void handleCall(std::shared_ptr<ServerCall> Call) override;

  Receive OnCall;
  std::unique_ptr<Acceptor> Connections;
  /// Answers connections over the limit of descriptors.
  std::optional<RefusingServer> Refusals;
  grpc::AsyncGenericService Service;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> Injector;
  std::unique_ptr<grpc::ServerCompletionQueue> Queue;
  std::unique_ptr<grpc::Server> Server;
  std::thread Thread;
  std::mutex Mutex;
  /// Once true, no call is awaited or handled. Guarded by Mutex.
  bool IsStopping = false;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCCALLSERVER_H
