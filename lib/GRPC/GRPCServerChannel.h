//===- GRPCServerChannel.h - The server's end of a session ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// GRPCServerChannel: one session as a server sees it, be it a stream or the
/// unary calls that belong together.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_GRPC_GRPCSERVERCHANNEL_H
#define MLBRIDGE_LIB_GRPC_GRPCSERVERCHANNEL_H

#include "GRPC/GRPCMessage.h"
#include "GRPC/GRPCServerCall.h"
#include "Transport/ServerChannel.h"

namespace MLBridge::GRPC {

class GRPCServerChannel final : public ServerChannel {
public:
  /// A client of unary calls does not say when it has no more of them; after
  /// that long without one, its session is over.
  static constexpr std::chrono::seconds MaxIdle{60};

  /// \p Stream is the session's call; null where it has many. \p Peer names the
  /// other side in messages.
  GRPCServerChannel(std::shared_ptr<RequestQueue> Box,
                    std::shared_ptr<ServerCall> Stream, std::string Peer,
                    std::size_t MaxMessage);
  ~GRPCServerChannel() override;

  bool isReadable() const override;
  Expected<Progress> advance() override;
  Span<const std::byte> message() const override { return In.bytes(); }
  std::shared_ptr<const void> memory() const override { return In.share(); }
  bool isInsideMessage() const override { return false; }

  Expected<Span<std::byte>> acquire(std::size_t Size) override;
  Error commit(std::size_t Size, Duration Within) override;
  /// gRPC keeps an answer until the client takes it. Only one that it does not
  /// take in time is an affair of the server's.
  bool isSending() const override;
  Deadline unsentUntil() const override;
  Error flush() override;

  void fillPoll(pollfd *FDs) const override;
  bool prepareToSleep() override;
  void wakeUp(const pollfd *FDs) override;
  bool isReadable(const pollfd *) const override { return hasNext(); }
  bool peerIsGone(const pollfd *FDs) const override;

private:
  bool isAnswering() const { return Current && Current->isAnswering(); }
  /// Whether there is a request, and the last answer is not in its way.
  bool hasNext() const { return !Box->isEmpty() && !isAnswering(); }

  std::shared_ptr<RequestQueue> Box;
  std::shared_ptr<ServerCall> Stream;
  /// The call to be answered: the stream, or that of the last request.
  std::shared_ptr<ServerCall> Current;
  std::string Peer;
  std::size_t MaxMessage;
  Deadline ReplyUntil = Deadline::never();
  Deadline IdleUntil = Deadline::never();
  IncomingMessage In;
  OutgoingMessage Out;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCSERVERCHANNEL_H
