//===- GRPCAcceptQueue.h - From calls to sessions ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AcceptQueue: from calls that arrive to sessions. ModelServer has one for an
/// address; the compiler's side in training has one by itself.
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

/// A session that has begun, and waits to be taken in.
struct PendingSession {
  std::shared_ptr<RequestQueue> Box;
  /// The session's call, or the first of them.
  std::shared_ptr<ServerCall> First;
  /// Null where the session has a call for each request.
  std::shared_ptr<ServerCall> Stream;

  /// Tells the client why it is not taken in.
  void refuse(const std::string &Why) const;
};

/// Used by two threads, as a RequestQueue is.
class AcceptQueue {
public:
  static Expected<std::unique_ptr<AcceptQueue>>
  open(const std::string &Address, const Methods &Known,
       const CallServer::Options &Options);

  ~AcceptQueue();

  /// Readable when there are arrivals, or a request queue that was asleep has
  /// changed.
  int doorbell() const { return Owner->Doorbell.get(); }
  /// Also hears the doorbell.
  std::vector<PendingSession> takePending();
  /// Has \p Who among the next ones that are taken.
  void announce(PendingSession Who);
  /// Ends the unary session that has been idle the longest; false if none is
  /// idle. Its client may be gone, which it does not say, or begin another
  /// session by its next call.
  bool endIdle();
  /// Where it listens, with the port that was picked for port 0.
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
  /// By the names that clients give their unary sessions.
  std::unordered_map<std::string, std::weak_ptr<RequestQueue>> Unary;
  /// Last: its thread uses the others.
  std::unique_ptr<CallServer> Calls;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCACCEPTQUEUE_H
