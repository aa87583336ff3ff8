//===- GRPCServerChannel.h - The server's end of a session ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// GRPCServerChannel: the server's end of a session. The session is a stream or
/// a series of unary calls.
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
  /// A session of unary calls ends if this time passes without a call, because
  /// clients do not announce the end of such a session.
  static constexpr std::chrono::seconds MaxIdle{60};

  /// \p Stream is null for a session of unary calls. \p Peer is the name of the
  /// other side in error messages. \p HasOwnMethod is true if the calls belong
  /// to the user's own service.
  GRPCServerChannel(std::shared_ptr<RequestQueue> Requests,
                    std::shared_ptr<ServerCall> Stream, std::string Peer,
                    std::size_t MaxMessage, bool HasOwnMethod);
  ~GRPCServerChannel() override;

  bool isReadable() const override;
  Expected<Progress> advance() override;
  Span<const std::byte> message() const override { return In.bytes(); }
  std::shared_ptr<const void> memory() const override { return In.share(); }
  bool isInsideMessage() const override { return false; }

  Expected<Span<std::byte>> acquire(std::size_t Size) override;
  Error commit(std::size_t Size, Duration Within) override;
  /// If the client does not use this library and calls the user's own service,
  /// ends the call with a status. Such a client does not know the protocol's
  /// tensors, so a reply without fields would look like advice to it.
  bool sendFailure(std::string_view Name, std::string_view Text) override;
  /// Returns true only if the client has not read a reply in time, or if the
  /// session has been idle for too long. An unsent reply alone does not count,
  /// because gRPC buffers it.
  bool isSending() const override;
  Deadline unsentUntil() const override;
  Error flush() override;

  void fillPoll(pollfd *FDs) const override;
  bool prepareToSleep() override;
  void wakeUp(const pollfd *FDs) override;
  bool isReadable(const pollfd *) const override { return hasNext(); }
  bool peerIsGone(const pollfd *FDs) const override;

private:
  bool isReplying() const { return Current && Current->isReplying(); }
  /// Returns true if there is a request and the last reply has been written.
  bool hasNext() const { return !Requests->isEmpty() && !isReplying(); }

  std::shared_ptr<RequestQueue> Requests;
  std::shared_ptr<ServerCall> Stream;
  /// The call that receives the next reply: the stream, or the unary call of
  /// the last request.
  std::shared_ptr<ServerCall> Current;
  std::string Peer;
  std::size_t MaxMessage;
  bool HasOwnMethod;
  Deadline ReplyUntil = Deadline::never();
  Deadline IdleUntil = Deadline::never();
  IncomingMessage In;
  OutgoingMessage Out;
};

} // namespace MLBridge::GRPC

#endif // MLBRIDGE_LIB_GRPC_GRPCSERVERCHANNEL_H
