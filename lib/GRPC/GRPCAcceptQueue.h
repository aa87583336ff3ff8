//===- GRPCAcceptQueue.h - Sessions from gRPC calls -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AcceptQueue: groups incoming calls into sessions, and queues the new
/// sessions. GRPCListener uses it on the model side. CompilerTransport uses it
/// in training, where the compiler listens for its trainer.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCACCEPTQUEUE_H
#define MLBRIDGE_LIB_GRPC_GRPCACCEPTQUEUE_H

#include "GRPC/GRPCCallServer.h"
#include "GRPC/GRPCProtocol.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace MLBridge::GRPC {

/// A new session, which the server has not accepted yet.
struct PendingSession {
  std::shared_ptr<RequestQueue> Requests;
  /// The first call of the session: its stream or its first unary call.
  std::shared_ptr<ServerCall> First;
  /// The stream of the session. Null for a session of unary calls.
  std::shared_ptr<ServerCall> Stream;

  /// Ends the session's calls. The clients receive \p Why as the reason.
  void refuse(const std::string &Why) const;
};

/// Two threads use an AcceptQueue: gRPC's thread adds sessions, and the
/// server's thread removes them.
class AcceptQueue {
public:
  /// Listens at \p Address for calls of the methods \p Known, or of \p
  /// OwnMethod unless it is empty. Returns the errors of checkProcess() and
  /// CallServer::listen().
  static Expected<std::unique_ptr<AcceptQueue>>
  open(const std::string &Address, const Methods &Known, std::string OwnMethod,
       const CallServer::Options &Options);

  ~AcceptQueue();

  /// Returns a descriptor for poll(2). It is readable if there are pending
  /// sessions. It also becomes readable when the requests of a session change
  /// while the server sleeps.
  int doorbell() const { return Owner->Doorbell.get(); }
  /// Removes and returns all pending sessions. Makes doorbell() unreadable.
  std::vector<PendingSession> takePending();
  void enqueue(PendingSession Session);
  /// Ends the unary session that has been idle for the longest time. Returns
  /// false if no session is idle. A client of unary calls does not announce
  /// when it ends, so idle sessions would accumulate. If the client is still
  /// alive, its next call begins a new session.
  bool endIdle();
  const std::string &address() const { return Calls->address(); }

private:
  AcceptQueue(const Methods &Known, std::string OwnMethod,
              std::shared_ptr<const RequestQueueOwner> Owner)
      : Known(Known), OwnMethod(std::move(OwnMethod)), Owner(std::move(Owner)) {
  }
  void receive(const std::shared_ptr<ServerCall> &Call);
  void receiveStream(const std::shared_ptr<ServerCall> &Call);
  void receiveUnary(const std::shared_ptr<ServerCall> &Call);

  const Methods &Known;
  /// The path of the only accepted method, or empty.
  std::string OwnMethod;
  std::shared_ptr<const RequestQueueOwner> Owner;
  std::mutex Mutex;
  std::vector<PendingSession> Pending;
  /// The unary sessions. The keys are the names that the clients gave them.
  std::unordered_map<std::string, std::weak_ptr<RequestQueue>> Unary;
  /// Declared last, so that it is destroyed first. Its thread uses the other
  /// members.
  std::unique_ptr<CallServer> Calls;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCACCEPTQUEUE_H
