//===- PipeChannel.cpp - The model's end of two pipes ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transport/PipeChannel.h"

#include <cstring>

using namespace MLBridge;

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

Expected<ServerChannel::Progress> PipeChannel::advance() {
  Expected<bool> IsComplete = readFrame(Content::Request);
  if (!IsComplete)
    return IsComplete.takeError();
  if (!*IsComplete)
    return Progress::Incomplete;
  Request = numberRead();
  return Progress::Complete;
}

//===----------------------------------------------------------------------===//
// Replies
//===----------------------------------------------------------------------===//

Error PipeChannel::writeReply(Span<iovec> &Left) {
  Error E = writeSome(Left, &PipeWriter::write);
  // Return a more precise message. A compiler closes its session not only when
  // it ends, but also when it abandons a request.
  if (E.code() == ErrorCode::PeerClosed)
    return {ErrorCode::PeerClosed,
            Peer + " no longer waits for the reply: it ended, or its "
                   "`timeout` passed"};
  return E;
}

Error PipeChannel::commit(std::size_t Size, Duration Within) {
  if (Error E = frame(Size))
    return E;
  Span<iovec> Left = Gathered;
  IsInsideReply = true;
  if (Error E = writeReply(Left))
    return E;
  IsInsideReply = false;
  if (!Left.empty()) {
    Unsent = Left.front();
    UnsentWithin = Within;
    UnsentUntil = Deadline::in(Within);
  }
  return Error::success();
}

Error PipeChannel::send(Span<const Span<const std::byte>> Pieces,
                        Duration Within) {
  if (Error E = gather(Pieces))
    return E;
  Span<iovec> Left = Gathered;
  IsInsideReply = true;
  if (Error E = writeReply(Left))
    return E;
  if (Left.empty()) {
    IsInsideReply = false;
    return Error::success();
  }
  std::size_t NumLeft = 0;
  for (const iovec &Piece : Left)
    NumLeft += Piece.iov_len;
  if (Error E = Out.grow(NumLeft, 0))
    return E;
  std::byte *Next = Out.data();
  for (const iovec &Piece : Left) {
    std::memcpy(Next, Piece.iov_base, Piece.iov_len);
    Next += Piece.iov_len;
  }
  IsInsideReply = false;
  Unsent = {Out.data(), NumLeft};
  UnsentWithin = Within;
  UnsentUntil = Deadline::in(Within);
  return Error::success();
}

Error PipeChannel::flush() {
  const std::size_t Before = Unsent.iov_len;
  Span<iovec> Left(&Unsent, 1);
  if (Error E = writeReply(Left))
    return E;
  if (Left.empty()) {
    Unsent = {};
    UnsentUntil = Deadline::never();
  } else if (Unsent.iov_len != Before) {
    // The compiler is slow, but it still reads. Therefore, give it more time.
    UnsentUntil = Deadline::in(UnsentWithin);
  } else if (UnsentUntil.expired()) {
    return Error(ErrorCode::Timeout,
                 Peer + " did not read its reply before the deadline");
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Polling
//===----------------------------------------------------------------------===//

void PipeChannel::fillPoll(pollfd *FDs) const {
  // Do not read the next request while a reply is unsent.
  FDs[0] = {isSending() ? -1 : Read.get(), POLLIN, 0};
  FDs[1] = {PeerProcess.get(), POLLIN, 0};
  // Watch the write end if a reply is unsent. If the peer's process is unknown,
  // always watch the write end, which reports POLLERR when the peer ends.
  FDs[2] = {PeerProcess && !isSending() ? -1 : Writer.get(),
            static_cast<short>(isSending() ? POLLOUT : 0), 0};
}

bool PipeChannel::peerIsGone(const pollfd *FDs) const {
  return FDs[1].revents != 0 || (FDs[2].revents & POLLERR) != 0;
}
