//===- GRPCLobby.h - From calls to sessions ---------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Lobby: from calls that arrive to sessions. ModelServer has one for an
/// address; the compiler's side in training has one by itself.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCLOBBY_H
#define MLBRIDGE_LIB_GRPC_GRPCLOBBY_H

#include "GRPC/GRPCListener.h"
#include "GRPC/GRPCProtocol.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace MLBridge::GRPC {

/// A session that has begun, and waits to be taken in.
struct Arrival {
  std::shared_ptr<Mailbox> Box;
  /// The session's call, or the first of them.
  std::shared_ptr<ServerCall> First;
  /// Null where the session has a call for each question.
  std::shared_ptr<ServerCall> Stream;

  /// Tells the client why it is not taken in.
  void refuse(const std::string &Why) const;
};

/// Used by two threads, as a Mailbox is.
class Lobby {
public:
  static Expected<std::unique_ptr<Lobby>>
  open(const std::string &Address, const Methods &Known,
       const Listener::Options &Options);

  ~Lobby();

  /// Readable when there are arrivals, or a mailbox that was asleep has
  /// changed.
  int doorbell() const { return Owner->Doorbell.get(); }
  /// Also hears the doorbell.
  std::vector<Arrival> takeArrivals();
  /// Has \p Who among the next ones that are taken.
  void announce(Arrival Who);
  /// Ends the unary session that has been idle the longest; false if none is
  /// idle. Its client may be gone, which it does not say, or begin another
  /// session by its next call.
  bool endIdle();
  /// Where it listens, with the port that was picked for port 0.
  const std::string &address() const { return Calls->address(); }

private:
  Lobby(const Methods &Known, std::shared_ptr<const MailboxOwner> Owner)
      : Known(Known), Owner(std::move(Owner)) {}
  void receive(const std::shared_ptr<ServerCall> &Call);
  void receiveStream(const std::shared_ptr<ServerCall> &Call);
  void receiveUnary(const std::shared_ptr<ServerCall> &Call);

  const Methods &Known;
  std::shared_ptr<const MailboxOwner> Owner;
  std::mutex Mutex;
  std::vector<Arrival> Arrivals;
  /// By the names that clients give their unary sessions.
  std::unordered_map<std::string, std::weak_ptr<Mailbox>> Unary;
  /// Last: its thread uses the others.
  std::unique_ptr<Listener> Calls;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCLOBBY_H
