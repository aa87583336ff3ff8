//===- GRPCServerChannel.cpp - The server's end of a session --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCServerChannel.h"

#include "Support/Abandon.h"
#include "Transport/MessageLimit.h"

using namespace MLBridge;
using namespace MLBridge::GRPC;

GRPCServerChannel::GRPCServerChannel(std::shared_ptr<RequestQueue> Box,
                                     std::shared_ptr<ServerCall> Stream,
                                     std::string Peer, std::size_t MaxMessage)
    : Box(std::move(Box)), Stream(std::move(Stream)), Current(this->Stream),
      Peer(std::move(Peer)), MaxMessage(MaxMessage) {
  if (!this->Stream)
    IdleUntil = Deadline::in(MaxIdle);
}

GRPCServerChannel::~GRPCServerChannel() {
  if (Box->isForked()) {
    abandon(std::move(Current));
    abandon(std::move(Stream));
    abandon(std::move(Box));
    return;
  }
  const grpc::Status Over(grpc::StatusCode::UNAVAILABLE,
                          "the model side has ended the session");
  for (const std::shared_ptr<ServerCall> &Unanswered : Box->close(Over))
    Unanswered->finish(Over);
  if (Current && !Stream)
    Current->finish(Over);
  if (!Stream)
    return;
  // A stream that its client has ended was a good one.
  Stream->finish(Box->hasEnded() ? grpc::Status::OK : Over);
  // What the client does not read keeps the status from it as well.
  if (isAnswering() && ReplyUntil.expired())
    Stream->cancel();
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

bool GRPCServerChannel::isReadable() const {
  return hasNext() || Box->hasEnded();
}

Expected<ServerChannel::Progress> GRPCServerChannel::advance() {
  // Before the request is looked for: it may have come before the end.
  const bool HasEnded = Box->hasEnded();
  if (isAnswering())
    return Progress::Incomplete;
  std::shared_ptr<ServerCall> Next = Box->take();
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
// Answers
//===----------------------------------------------------------------------===//

Expected<Span<std::byte>> GRPCServerChannel::acquire(std::size_t Size) {
  return Out.acquire(Size);
}

Error GRPCServerChannel::commit(std::size_t Size, Duration Within) {
  if (Error E = checkMessageSize(Size, MaxMessage, Peer))
    return E;
  ReplyUntil = Deadline::in(Within);
  Current->answer(Out.lend(Size));
  if (!Stream) {
    Current.reset();
    IdleUntil = Deadline::in(MaxIdle);
  }
  return Error::success();
}

bool GRPCServerChannel::isSending() const {
  return !hasNext() && unsentUntil().expired();
}

Deadline GRPCServerChannel::unsentUntil() const {
  return isAnswering() ? ReplyUntil : IdleUntil;
}

Error GRPCServerChannel::flush() {
  if (isAnswering() && ReplyUntil.expired())
    return {ErrorCode::Timeout, Peer + " does not take its answer"};
  if (IdleUntil.expired())
    return {ErrorCode::PeerClosed, Peer + " makes no more calls"};
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Sleep
//===----------------------------------------------------------------------===//

void GRPCServerChannel::fillPoll(pollfd *FDs) const {
  // The listener's doorbell is the session's as well.
  for (std::size_t I = 0; I < NumPollFDs; ++I)
    FDs[I] = {-1, 0, 0};
}

bool GRPCServerChannel::prepareToSleep() {
  Box->setSleeping(true);
  return !hasNext() && !Box->hasEnded();
}

void GRPCServerChannel::wakeUp(const pollfd *) { Box->setSleeping(false); }

bool GRPCServerChannel::peerIsGone(const pollfd *) const {
  return Box->hasEnded() && Box->isEmpty();
}
