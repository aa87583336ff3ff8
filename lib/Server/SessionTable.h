//===- SessionTable.h - The open sessions of a server -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines SessionTable, with which a listener adds sessions to its server.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SERVER_SESSIONTABLE_H
#define MLBRIDGE_LIB_SERVER_SESSIONTABLE_H

#include "Server/ServerSession.h"

#include <vector>

namespace MLBridge {

class SessionTable {
public:
  /// Creates a table that adds sessions to \p Open and updates the other
  /// arguments.
  SessionTable(std::vector<std::unique_ptr<ServerSession>> &Open,
               ModelServer::Statistics &Counts, Error &LastError,
               Error &LastRefusal)
      : Open(Open), Counts(Counts), LastError(LastError),
        LastRefusal(LastRefusal) {}

  /// Returns Unsupported if \p MaxSessions sessions are open.
  Error checkRoom(std::size_t MaxSessions) const {
    if (Open.size() < MaxSessions)
      return Error::success();
    return {ErrorCode::Unsupported,
            "the model side has reached its limit of sessions (max-sessions=" +
                std::to_string(MaxSessions) + ")"};
  }
  std::uint64_t nextNumber() const { return Counts.Sessions + 1; }
  /// Adds \p Session, which must have the number nextNumber().
  void add(std::unique_ptr<ServerSession> Session) {
    ++Counts.Sessions;
    Open.push_back(std::move(Session));
  }
  /// Counts a refused compiler and stores the reason.
  void refuse(Error Why) {
    ++Counts.Refused;
    LastRefusal = std::move(Why);
  }
  void reportError(Error Why) { LastError = std::move(Why); }

private:
  std::vector<std::unique_ptr<ServerSession>> &Open;
  ModelServer::Statistics &Counts;
  Error &LastError;
  Error &LastRefusal;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SERVER_SESSIONTABLE_H
