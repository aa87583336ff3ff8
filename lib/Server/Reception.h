//===- Reception.h - From a door to the sessions ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reception: what a door hands to its server, which numbers the sessions.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SERVER_RECEPTION_H
#define MLBRIDGE_LIB_SERVER_RECEPTION_H

#include "Server/ServerSession.h"

#include <vector>

namespace MLBridge {

class Reception {
public:
  /// Collects in \p Open; \p Met counts who was ever admitted.
  Reception(std::vector<std::unique_ptr<ServerSession>> &Open,
            std::uint64_t &Met, Error &LastError)
      : Open(Open), Met(Met), LastError(LastError) {}

  /// Whether one more may be admitted, where there may be \p MaxSessions.
  Error checkRoom(std::size_t MaxSessions) const {
    if (Open.size() < MaxSessions)
      return Error::success();
    return {ErrorCode::Unsupported,
            "the model has " + std::to_string(Open.size()) +
                " sessions, and takes no more than " +
                std::to_string(MaxSessions) + " (max-sessions)"};
  }
  /// The number of the session that is admitted next.
  std::uint64_t nextNumber() const { return Met + 1; }
  /// Begins a session, whose number is nextNumber().
  void admit(std::unique_ptr<ServerSession> Session) {
    ++Met;
    Open.push_back(std::move(Session));
  }
  /// Notes why somebody was not admitted.
  void note(Error Why) { LastError = std::move(Why); }

private:
  std::vector<std::unique_ptr<ServerSession>> &Open;
  std::uint64_t &Met;
  Error &LastError;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SERVER_RECEPTION_H
