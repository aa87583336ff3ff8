//===- SessionTable.h - From a listener to the sessions ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// SessionTable: what a listener hands to its server, which numbers the
/// sessions.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SERVER_SESSIONTABLE_H
#define MLBRIDGE_LIB_SERVER_SESSIONTABLE_H

#include "Server/ServerSession.h"

#include <vector>

namespace MLBridge {

class SessionTable {
public:
  /// Collects in \p Open, and counts in \p Counts who came.
  SessionTable(std::vector<std::unique_ptr<ServerSession>> &Open,
               ModelServer::Statistics &Counts, Error &LastError,
               Error &LastRefusal)
      : Open(Open), Counts(Counts), LastError(LastError),
        LastRefusal(LastRefusal) {}

  /// Whether one more may be admitted, where there may be \p MaxSessions.
  Error checkRoom(std::size_t MaxSessions) const {
    if (Open.size() < MaxSessions)
      return Error::success();
    return {ErrorCode::Unsupported,
            "the model has as many sessions as it takes (max-sessions=" +
                std::to_string(MaxSessions) + ")"};
  }
  /// The number of the session that is admitted next.
  std::uint64_t nextNumber() const { return Counts.Sessions + 1; }
  /// Begins a session, whose number is nextNumber().
  void admit(std::unique_ptr<ServerSession> Session) {
    ++Counts.Sessions;
    Open.push_back(std::move(Session));
  }
  /// Counts a compiler that was not admitted.
  void refuse(Error Why) {
    ++Counts.Refused;
    LastRefusal = std::move(Why);
  }
  /// Notes what went wrong at a listener.
  void note(Error Why) { LastError = std::move(Why); }

private:
  std::vector<std::unique_ptr<ServerSession>> &Open;
  ModelServer::Statistics &Counts;
  Error &LastError;
  Error &LastRefusal;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SERVER_SESSIONTABLE_H
