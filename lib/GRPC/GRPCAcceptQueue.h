//===- GRPCAcceptQueue.h - Sessions from gRPC calls -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AcceptQueue: groups incoming calls into sessions and queues new sessions.
/// GRPCListener has one, and so has the compiler's side in training.
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

/// A session that waits to be accepted.
struct PendingSession {
  std::shared_ptr<RequestQueue> Requests;
  /// The session's stream or its first unary call.
  std::shared_ptr<ServerCall> First;
  /// Null for a session of unary calls.
  std::shared_ptr<ServerCall> Stream;

  /// Ends the session's calls with the reason \p Why.
  void refuse(const std::string &Why) const;
};

/// Used by two threads: gRPC's adds sessions, the server's takes them.
class AcceptQueue {
public:
  /// Listens at \p Address for the methods \p Known. Errors: those of
  /// checkProcess() and CallServer::listen().
  static Expected<std::unique_ptr<AcceptQueue>>
  open(const std::string &Address, const Methods &Known,
       const CallServer::Options &Options);

  ~AcceptQueue();

  /// A descriptor that is readable if there are pending sessions or a sleeping
  /// request queue has changed.
  int doorbell() const { return Owner->Doorbell.get(); }
  /// Takes all pending sessions, and clears the doorbell.
  std::vector<PendingSession> takePending();
  /// Adds \p Session to the pending sessions.
  void enqueue(PendingSession Session);
  /// Ends the unary session that has been idle the longest; false if none is
  /// idle. Clients of unary calls do not announce their end; if the client is
  /// alive, its next call begins another session.
  bool endIdle();
  /// The address, with the actual port in place of port 0.
  const std::string &address() const { return Calls->address(); }

private:
  AcceptQueue(const Methods &Known,
              std::shared_ptr<const RequestQueueOwner> Owner)
      : Known(Known), Owner(std::move(Owner)) {}
  void receive(const std::shared_ptr<ServerCall> &Call);
  void receiveStream(const std::shared_ptr<ServerCall> &Call);
  void receiveUnary(const std::shared_ptr<ServerCall> &Call);

  const Methods &Known;
  std::shared_ptr<const RequestQueueOwner> Owner;
  std::mutex Mutex;
  std::vector<PendingSession> Pending;
  /// The unary sessions by the names that clients give them.
  std::unordered_map<std::string, std::weak_ptr<RequestQueue>> Unary;
  /// The last member: its thread uses the others.
  std::unique_ptr<CallServer> Calls;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCACCEPTQUEUE_H
