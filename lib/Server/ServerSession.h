//===- ServerSession.h - The model side's view of one compiler --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ServerSession: the channel, SerDes and identity of one compiler. No function
/// here blocks; ModelServer waits for all sessions at once.
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

  /// A compiler that does not read its reply for \p Timeout loses its session.
  ServerSession(Identity Peer, std::unique_ptr<ServerChannel> Channel,
                std::unique_ptr<BaseSerDes> Codec, Duration Timeout);

  const Identity &peer() const { return Peer; }
  ServerChannel &channel() { return *Channel; }

  /// Decodes the channel's complete message. From then on, awaitsReply() is
  /// true.
  Expected<ModelServer::Request> decode();
  /// Sends the reply, or as much of it as the compiler reads at once.
  Error reply(Span<const TensorView> Advice);
  /// Closes the channel. The views of the last request stay valid.
  void close() { Channel.reset(); }
  /// Whether the model has a request without a reply.
  bool awaitsReply() const { return AwaitsReply; }
  /// Whether the last reply has been sent, so that the next request may be
  /// read.
  bool isListening() const { return !AwaitsReply && !Channel->isSending(); }

private:
  Identity Peer;
  std::unique_ptr<ServerChannel> Channel;
  std::unique_ptr<BaseSerDes> Codec;
  Duration Timeout;
  bool AwaitsReply = false;
  std::uint64_t Requests = 0;
  PrivateCopy Copy;

  // The memory that the views of the last request point into.
  std::shared_ptr<const void> Memory;
  const void *Buffer = nullptr;
  std::shared_ptr<const void> DecodedMemory;
  std::uint64_t Moves = 0;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SERVER_SERVERSESSION_H
