//===- GRPCPeers.h - What else may be at a port -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Peers that are not ours: servers that speak no HTTP/2 or end every call
/// with a status, clients that send what they like, and a network that stops.
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

/// gRPC ends a moment after the last of its objects. Until then, a child that
/// is forked cannot use it.
void awaitEndOfGRPC();

/// A port of the loopback that nobody listens at.
int freePort();

/// Accepts connections, greets, and says nothing more.
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

/// Passes bytes on to a port of the loopback until it is told to stop, and then
/// takes no more of them: both ends still have their connection.
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

/// A gRPC server that answers the first message of any call with \p Reply, if
/// there is one, and then ends it with a status.
class StatusServer final : grpc::CallbackGenericService {
public:
  explicit StatusServer(grpc::Status Status, std::string Reply = {});
  ~StatusServer() override;
  /// Where it is.
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
  /// Where it is.
  std::string spec() const;

private:
  grpc::ServerGenericBidiReactor *
  CreateReactor(grpc::GenericCallbackServerContext *) override;

  std::string Reply;
  int Port = 0;
  std::unique_ptr<grpc::Server> Server;
};

/// One call by a client that waits for each thing it does, for 10 s at most.
class RawCall {
public:
  RawCall(int Port, const std::string &Method,
          const std::vector<std::pair<std::string, std::string>> &Metadata);
  ~RawCall();

  bool write(const std::string &Message);
  /// The next message; empty at the end.
  std::string read();
  /// The status with which the server ends the call.
  grpc::Status end();

private:
  bool wait();

  grpc::CompletionQueue Queue;
  grpc::ClientContext Context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> Stream;
};

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_FAULTS_GRPCPEERS_H
