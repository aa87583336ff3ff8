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
    /// The time limit for a peer to complete the handshakes of HTTP/2 and TLS.
    Duration PeerTimeout;
    gRPCCredentials Credentials;
  };
  /// A handler of new calls. The server's thread calls it.
  using Receive = std::function<void(const std::shared_ptr<ServerCall> &)>;

  /// Listens at \p Address, which is `host:port` or `unix:PATH`. Call
  /// checkProcess() first. Returns a System error if listening fails. Also
  /// returns the errors of makeServerCredentials().
  static Expected<std::unique_ptr<CallServer>>
  listen(const std::string &Address, const Options &Settings, Receive OnCall);
  /// Ends all calls, and blocks until their owners have released them. A forked
  /// child lacks the threads, so it must not run this destructor but use
  /// abandon().
  ~CallServer();

  const std::string &address() const { return Connections->address(); }

private:
  explicit CallServer(Receive OnCall) : OnCall(std::move(OnCall)) {}
  void run();
  void serve(posix::UniqueFD Connection);
  void awaitCall();
  void handleCall(std::shared_ptr<ServerCall> Call) override;

  Receive OnCall;
  std::unique_ptr<Acceptor> Connections;
  /// Answers the connections that are refused because descriptors have run out.
  std::optional<RefusingServer> Refusals;
  grpc::AsyncGenericService Service;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> Injector;
  std::unique_ptr<grpc::ServerCompletionQueue> Queue;
  std::unique_ptr<grpc::Server> Server;
  std::thread Thread;
  std::mutex Mutex;
  /// True once the server stops. No call is awaited or handled after that.
  /// Guarded by Mutex.
  bool IsStopping = false;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCCALLSERVER_H
