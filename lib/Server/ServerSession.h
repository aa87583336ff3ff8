//===- ServerSession.h - The model side of one session ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines ServerSession, which holds the channel, SerDes and identity of one
/// compiler. No function of a session blocks, because ModelServer waits for all
/// sessions with a single poll(2).
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SERVER_SERVERSESSION_H
#define MLBRIDGE_LIB_SERVER_SERVERSESSION_H

#include "MLCompilerBridge/Transport/ModelServer.h"
#include "Session/PrivateCopy.h"
#include "Transport/ServerChannel.h"

#include <string>

namespace MLBridge {

class ServerSession {
public:
  struct Identity {
    std::uint64_t Number = 0;
    pid_t Pid = 0;
    std::string AdviceType;
    bool Bare = false;

    /// Returns the name for messages, such as "compiler 4711 (session 3)".
    std::string describe() const;
  };

  /// Creates a session. If the compiler does not read a reply within
  /// \p Timeout, the session fails.
  ServerSession(Identity Peer, std::unique_ptr<ServerChannel> Channel,
                std::unique_ptr<BaseSerDes> Codec, Duration Timeout);

  const Identity &peer() const { return Peer; }
  ServerChannel &channel() { return *Channel; }

  /// Decodes the channel's message, which must be complete. Afterwards,
  /// awaitsReply() is true.
  Expected<ModelServer::Request> decode();
  /// Sends the reply. If the channel is full, sends only a part of the reply,
  /// and the server must flush the channel later.
  Error reply(Span<const TensorView> Advice);
  /// Closes the channel. The views of the last request remain valid.
  void close() { Channel.reset(); }
  /// Returns whether the last request still needs a reply.
  bool awaitsReply() const { return AwaitsReply; }
  /// Returns whether the next request may be read, because the last reply has
  /// been sent completely.
  bool isListening() const { return !AwaitsReply && !Channel->isSending(); }

private:
  Identity Peer;
  std::unique_ptr<ServerChannel> Channel;
  std::unique_ptr<BaseSerDes> Codec;
  Duration Timeout;
  bool AwaitsReply = false;
  std::uint64_t Requests = 0;
  PrivateCopy Copy;

  // The memory that the views of the last request point to.
  std::shared_ptr<const void> Memory;
  const void *Buffer = nullptr;
  std::shared_ptr<const void> DecodedMemory;
  std::uint64_t Moves = 0;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SERVER_SERVERSESSION_H
