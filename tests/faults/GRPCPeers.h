//===- GRPCPeers.h - Other peers for gRPC tests -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Peers that do not come from this library: servers that do not speak HTTP/2
/// or that end every call with a status, clients that send arbitrary bytes, and
/// a network that stops.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_FAULTS_GRPCPEERS_H
#define MLBRIDGE_TESTS_FAULTS_GRPCPEERS_H

#include "Support/Posix.h"

#include <atomic>
#include <grpcpp/channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server.h>
#include <string>
#include <thread>
#include <vector>

namespace MLBridge::test {

/// Waits until gRPC has shut down, a moment after its last object is destroyed.
/// Until then, a forked child cannot use gRPC.
void awaitEndOfGRPC();

/// Returns a loopback port on which no process listens.
int freePort();

/// Accepts connections and sends a greeting, but nothing else.
class RawListener {
public:
  RawListener(int Port, std::string Greeting);
  ~RawListener();

private:
  void run(const std::string &Greeting);

  posix::UniqueFD Socket;
  std::atomic<bool> Stop = false;
  std::thread Thread;
};

/// Forwards bytes to a loopback port until it is stopped. It then reads no more
/// bytes, but both connections stay open.
class Proxy {
public:
  explicit Proxy(int Target);
  ~Proxy();
  int port() const { return Port; }
  void stopForwarding() { Forwards = false; }

private:
  void run();

  int Target;
  int Port = 0;
  posix::UniqueFD Socket;
  std::atomic<bool> Forwards = true;
  std::atomic<bool> Stop = false;
  std::thread Thread;
};

/// A gRPC server that ends every call with a status. If \p Reply is not empty,
/// the server first answers the first message with it.
class StatusServer final : grpc::CallbackGenericService {
public:
  explicit StatusServer(grpc::Status Status, std::string Reply = {});
  ~StatusServer() override;
  /// The server's model spec.
  std::string spec() const;

private:
  grpc::ServerGenericBidiReactor *
  CreateReactor(grpc::GenericCallbackServerContext *) override;

  grpc::Status Status;
  std::string Reply;
  int Port = 0;
  std::unique_ptr<grpc::Server> Server;
};

/// A gRPC server that answers each message of any stream twice.
class TwiceServer final : grpc::CallbackGenericService {
public:
  explicit TwiceServer(std::string Reply);
  ~TwiceServer() override;
  /// The server's model spec.
  std::string spec() const;

private:
  grpc::ServerGenericBidiReactor *
  CreateReactor(grpc::GenericCallbackServerContext *) override;

  std::string Reply;
  int Port = 0;
  std::unique_ptr<grpc::Server> Server;
};

/// One call by a client. Each operation waits for at most 10 s.
class RawCall {
public:
  RawCall(int Port, const std::string &Method,
          const std::vector<std::pair<std::string, std::string>> &Metadata);
  ~RawCall();

  bool write(const std::string &Message);
  /// Returns the next message, or an empty string at the end.
  std::string read();
  /// Returns the status with which the server ended the call.
  grpc::Status end();

private:
  bool wait();

  grpc::CompletionQueue Queue;
  grpc::ClientContext Context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> Stream;
};

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_FAULTS_GRPCPEERS_H
