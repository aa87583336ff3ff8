//===- GRPCListener.h - A gRPC server and its thread ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Listener: a gRPC server at an address, and the one thread that attends to
/// it. (That whoever spins for a question polls in its place saves nothing that
/// can be measured.)
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCLISTENER_H
#define MLBRIDGE_LIB_GRPC_GRPCLISTENER_H

#include "GRPC/GRPCServerCall.h"
#include "MLCompilerBridge/gRPCTransport.h"

#include <functional>
#include <grpcpp/server.h>
#include <thread>

namespace MLBridge::GRPC {

/// A Unix socket's name, made for a server that listens and removed with it.
class SocketName {
public:
  /// Where the server is to listen in the meantime: nobody else can connect
  /// there.
  static Expected<SocketName> reserve(std::string Path);
  const std::string &temporary() const { return Temporary; }
  /// Gives the socket its name, mode 0600. A live server's stays its own.
  Error publish();

  SocketName() = default;
  SocketName(SocketName &&) = default;
  SocketName &operator=(SocketName &&) = default;
  ~SocketName();

private:
  void removeTemporary();

  std::string Path, Folder, Temporary;
  posix::FileIdentity Identity;
};

class Listener final : public ServerCall::Owner {
public:
  struct Options {
    std::size_t MaxMessage;
    /// How long a newcomer may take until it speaks HTTP/2 (and TLS).
    Duration PeerTimeout;
    gRPCCredentials Credentials;
  };
  /// Called by gRPC's thread.
  using Receive = std::function<void(const std::shared_ptr<ServerCall> &)>;

  /// Listens at \p Address (`host:port` or `unix:PATH`).
  static Expected<std::unique_ptr<Listener>>
  listen(const std::string &Address, const Options &Wishes, Receive Received);
  /// Ends all calls. Whoever has one lets go of it before.
  ~Listener();

  /// Where it listens, with the port that was picked for port 0.
  const std::string &address() const { return Address; }

private:
  explicit Listener(Receive Received) : Received(std::move(Received)) {}
  void run();
  void awaitCall();
  void hasArrived(std::shared_ptr<ServerCall> Call) override;

  Receive Received;
  std::string Address;
  SocketName Socket;
  grpc::AsyncGenericService Service;
  std::unique_ptr<grpc::ServerCompletionQueue> Queue;
  std::unique_ptr<grpc::Server> Server;
  std::thread Thread;
  /// From when on no call is waited for or taken in.
  std::mutex Mutex;
  bool IsStopping = false;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCLISTENER_H
