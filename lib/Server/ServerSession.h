//===- ServerSession.h - One compiler, as the model side sees it *- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ServerSession: a channel, the SerDes that this compiler chose, and what is
/// known about it. Nothing here waits for a question; ModelServer does, for all
/// sessions at once.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SERVER_SERVERSESSION_H
#define MLBRIDGE_LIB_SERVER_SERVERSESSION_H

#include "MLCompilerBridge/ModelServer.h"
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

  ServerSession(Identity Who, std::unique_ptr<ServerChannel> Channel,
                std::unique_ptr<BaseSerDes> Codec);

  const Identity &who() const { return Who; }
  ServerChannel &channel() { return *Channel; }

  /// Decodes the message that the channel has completed.
  Expected<ModelServer::Question> decode();
  Error reply(Span<const TensorView> Advice, Deadline Until);

private:
  Identity Who;
  std::unique_ptr<ServerChannel> Channel;
  std::unique_ptr<BaseSerDes> Codec;

  // What the views of the last question depended on.
  std::uint64_t Layout = 0;
  std::uint64_t CodecLayout = 0;
  std::shared_ptr<const void> Memory;
  const void *Buffer = nullptr;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SERVER_SERVERSESSION_H
