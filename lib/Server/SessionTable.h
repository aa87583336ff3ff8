//===- SessionTable.h - The open sessions of a server -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// SessionTable: a listener's view of its server's sessions, to which it adds
/// new ones.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SERVER_SESSIONTABLE_H
#define MLBRIDGE_LIB_SERVER_SESSIONTABLE_H

#include "Server/ServerSession.h"

#include <vector>

namespace MLBridge {

class SessionTable {
public:
  /// Adds sessions to \p Open and updates the other arguments.
  SessionTable(std::vector<std::unique_ptr<ServerSession>> &Open,
               ModelServer::Statistics &Counts, Error &LastError,
               Error &LastRefusal)
      : Open(Open), Counts(Counts), LastError(LastError),
        LastRefusal(LastRefusal) {}

  /// Unsupported if \p MaxSessions sessions are open.
  Error checkRoom(std::size_t MaxSessions) const {
    if (Open.size() < MaxSessions)
      return Error::success();
    return {ErrorCode::Unsupported,
            "the model side has reached its limit of sessions (max-sessions=" +
                std::to_string(MaxSessions) + ")"};
  }
  /// The number of the next session.
  std::uint64_t nextNumber() const { return Counts.Sessions + 1; }
  /// Adds a session, whose number is nextNumber().
  void add(std::unique_ptr<ServerSession> Session) {
    ++Counts.Sessions;
    Open.push_back(std::move(Session));
  }
  /// Counts a refused compiler.
  void refuse(Error Why) {
    ++Counts.Refused;
    LastRefusal = std::move(Why);
  }
  /// Records a listener's error.
  void reportError(Error Why) { LastError = std::move(Why); }

private:
  std::vector<std::unique_ptr<ServerSession>> &Open;
  ModelServer::Statistics &Counts;
  Error &LastError;
  Error &LastRefusal;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SERVER_SESSIONTABLE_H
