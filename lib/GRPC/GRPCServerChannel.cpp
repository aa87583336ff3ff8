//===- GRPCServerChannel.cpp - The server's end of a session --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCServerChannel.h"

#include "GRPC/GRPCProtocol.h"
#include "GRPC/GRPCStatus.h"
#include "Support/Abandon.h"
#include "Transport/MessageLimit.h"

using namespace MLBridge;
using namespace MLBridge::GRPC;

GRPCServerChannel::GRPCServerChannel(std::shared_ptr<RequestQueue> Requests,
                                     std::shared_ptr<ServerCall> Stream,
                                     std::string Peer, std::size_t MaxMessage,
                                     bool HasOwnMethod)
    : Requests(std::move(Requests)), Stream(std::move(Stream)),
      Current(this->Stream), Peer(std::move(Peer)), MaxMessage(MaxMessage),
      HasOwnMethod(HasOwnMethod) {
  if (!this->Stream)
    IdleUntil = Deadline::in(MaxIdle);
}

GRPCServerChannel::~GRPCServerChannel() {
  if (Requests->isForked()) {
    abandon(std::move(Current));
    abandon(std::move(Stream));
    abandon(std::move(Requests));
    return;
  }
  const grpc::Status Over(grpc::StatusCode::UNAVAILABLE,
                          "the model side has ended the session");
  for (const std::shared_ptr<ServerCall> &Unanswered : Requests->close(Over))
    Unanswered->finish(Over);
  if (Current && !Stream)
    Current->finish(Over);
  if (!Stream)
    return;
  // If the client has ended the stream, the status is OK.
  Stream->finish(Requests->hasEnded() ? grpc::Status::OK : Over);
  // If the client did not read the last reply, it does not read the status
  // either. Therefore, cancel the stream.
  if (isReplying() && ReplyUntil.expired())
    Stream->cancel();
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

bool GRPCServerChannel::isReadable() const {
  return hasNext() || Requests->hasEnded();
}

Expected<ServerChannel::Progress> GRPCServerChannel::advance() {
  // Read this flag before take(). If the session has ended, the queue may still
  // contain requests, which must be handled first.
  const bool HasEnded = Requests->hasEnded();
  if (isReplying())
    return Progress::Incomplete;
  std::shared_ptr<ServerCall> Next = Requests->take();
  if (!Next) {
    if (HasEnded)
      return Error(ErrorCode::PeerClosed, Peer + " ended");
    return Progress::Incomplete;
  }
  Current = std::move(Next);
  if (Error E = In.take(Current->request()))
    return Error(E.code(), Peer + ": " + E.message());
  return Progress::Complete;
}

//===----------------------------------------------------------------------===//
// Replies
//===----------------------------------------------------------------------===//

Expected<Span<std::byte>> GRPCServerChannel::acquire(std::size_t Size) {
  return Out.acquire(Size);
}

Error GRPCServerChannel::commit(std::size_t Size, Duration Within) {
  if (Error E = checkMessageSize(Size, MaxMessage, Peer))
    return E;
  ReplyUntil = Deadline::in(Within);
  Current->reply(Out.asByteBuffer(Size));
  if (!Stream) {
    Current.reset();
    IdleUntil = Deadline::in(MaxIdle);
  }
  return Error::success();
}

bool GRPCServerChannel::sendFailure(std::string_view Name,
                                    std::string_view Text) {
  if (!HasOwnMethod || Stream || !Current ||
      !Current->metadata(Metadata::Protocol, {}).empty())
    return false;
  Current->finish(statusOf(Name, Text));
  Current.reset();
  IdleUntil = Deadline::in(MaxIdle);
  return true;
}

bool GRPCServerChannel::isSending() const {
  return !hasNext() && unsentUntil().expired();
}

Deadline GRPCServerChannel::unsentUntil() const {
  return isReplying() ? ReplyUntil : IdleUntil;
}

Error GRPCServerChannel::flush() {
  if (isReplying() && ReplyUntil.expired())
    return {ErrorCode::Timeout,
            Peer + " did not read its reply before the deadline"};
  if (IdleUntil.expired())
    return {ErrorCode::PeerClosed,
            Peer + " made no call for " + posix::formatDuration(MaxIdle)};
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Polling
//===----------------------------------------------------------------------===//

void GRPCServerChannel::fillPoll(pollfd *FDs) const {
  // Watch no descriptors, because sessions share the listener's doorbell.
  for (std::size_t I = 0; I < NumPollFDs; ++I)
    FDs[I] = {-1, 0, 0};
}

bool GRPCServerChannel::prepareToSleep() {
  Requests->setSleeping(true);
  return !hasNext() && !Requests->hasEnded();
}

void GRPCServerChannel::wakeUp(const pollfd *) { Requests->setSleeping(false); }

bool GRPCServerChannel::peerIsGone(const pollfd *) const {
  return Requests->hasEnded() && Requests->isEmpty();
}
