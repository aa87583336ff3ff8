//===- ServerSession.h - One compiler, as the model side sees it -*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ServerSession: a channel, the SerDes that this compiler chose, and what is
/// known about it. Nothing here waits; ModelServer does, for all sessions at
/// once.
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

    /// "compiler 4711 (session 3)".
    std::string describe() const;
  };

  /// A compiler that takes longer than \p Timeout to accept a reply is gone.
  ServerSession(Identity Who, std::unique_ptr<ServerChannel> Channel,
                std::unique_ptr<BaseSerDes> Codec, Duration Timeout);

  const Identity &who() const { return Who; }
  ServerChannel &channel() { return *Channel; }

  /// Decodes the message that the channel has completed. Its answer is awaited
  /// from now on.
  Expected<ModelServer::Request> decode();
  /// Sends the answer, or as much of it as the compiler takes at once.
  Error reply(Span<const TensorView> Advice);
  /// Ends the conversation. The views of the last request stay.
  void close() { Channel.reset(); }
  /// Whether a request is with the model.
  bool awaitsReply() const { return AwaitsReply; }
  /// Whether the next request may be looked for: the last one is answered.
  bool isListening() const { return !AwaitsReply && !Channel->isSending(); }

private:
  Identity Who;
  std::unique_ptr<ServerChannel> Channel;
  std::unique_ptr<BaseSerDes> Codec;
  Duration Timeout;
  bool AwaitsReply = false;
  std::uint64_t Requests = 0;
  PrivateCopy Copy;

  // What the views of the last request point into.
  std::shared_ptr<const void> Memory;
  const void *Buffer = nullptr;
  std::shared_ptr<const void> DecodedMemory;
  std::uint64_t Moves = 0;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SERVER_SERVERSESSION_H
