//===- PipeClient.cpp - The compiler's end of two pipes -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transport/PipeClient.h"

#include <cerrno>
#include <poll.h>

using namespace MLBridge;

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

Error PipeClient::writeAll(WriteFunction Write, Deadline Until) {
  Span<iovec> Left = Gathered;
  for (;;) {
    if (Error E = writeSome(Left, Write))
      return E;
    if (Left.empty())
      return Error::success();
    if (Error E = waitWritable(Until))
      return E;
  }
}

Error PipeClient::checkSilence() const {
  if (IsNumbered)
    return Error::success();
  pollfd FD{Read.get(), POLLIN, 0};
  if (::poll(&FD, 1, 0) <= 0 || !(FD.revents & POLLIN))
    return Error::success();
  return {ErrorCode::Malformed,
          Peer + " sent a message without a request: a duplicate or late "
                 "reply?"};
}

Error PipeClient::sendRegion(std::size_t Size, Deadline Until) {
  ++Request;
  if (Error E = frame(Size))
    return E;
  return writeAll(&PipeWriter::write, Until);
}

Error PipeClient::sendPieces(Span<const Span<const std::byte>> Pieces,
                             Deadline Until) {
  ++Request;
  if (Error E = gather(Pieces))
    return E;
  return writeAll(&PipeWriter::write, Until);
}

Error PipeClient::sendWithoutCopy(Span<const Span<const std::byte>> Pieces,
                                  Deadline Until) {
  // Copy smaller messages, because a copy is faster than the system calls of
  // splicing.
  constexpr std::size_t MinSpliced = std::size_t(16) << 10;
  ++Request;
  if (Error E = gather(Pieces))
    return E;
  return writeAll(
      Prefix[1] < MinSpliced ? &PipeWriter::write : &PipeWriter::splice, Until);
}

Error PipeClient::waitWritable(Deadline Until) {
  pollfd FDs[2] = {{Writer.get(), POLLOUT, 0}, {PeerProcess.get(), POLLIN, 0}};
  if (WriteWait.spin([&] { return ::poll(FDs, 1, 0) > 0; }))
    return Error::success();
  int Ready = ::poll(FDs, 2, Until.pollTimeout());
  if (Ready < 0 && errno != EINTR)
    return Error::fromErrno(errno, "cannot wait for " + Peer);
  // If the reader of a full pipe dies, poll(2) reports POLLERR for the pipe or
  // POLLIN for the process.
  if (Ready > 0)
    return FDs[0].revents & POLLOUT ? Error::success()
                                    : closed("while a message was sent to it");
  // Check the deadline after a signal, too. Otherwise, frequent signals could
  // postpone the timeout forever.
  if (Until.expired())
    return Error(ErrorCode::Timeout,
                 Peer + " did not read a message before the deadline");
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Replies
//===----------------------------------------------------------------------===//

Expected<Span<const std::byte>> PipeClient::receive(Deadline Until) {
  Expected<bool> IsComplete = false;
  auto TryRead = [&] {
    IsComplete = readFrame(Content::Reply);
    return !IsComplete || *IsComplete;
  };
  auto Probe = [&] { return hasInput() && TryRead(); };
  bool Done = ReadWait.spin(Probe);
  while (!Done) {
    Expected<bool> Gone = waitReadable(Until);
    if (!Gone)
      return Gone.takeError();
    // Try to read even if the peer has ended, because it may have replied
    // before its end.
    Done = TryRead() || (!*Gone && ReadWait.spin(Probe));
    if (Done)
      break;
    if (*Gone)
      return closed("before it answered");
    if (Until.expired())
      return Error(ErrorCode::Timeout,
                   Peer + " did not answer before the deadline");
  }
  if (!IsComplete)
    return IsComplete.takeError();
  // The peer has replied, so it has read the whole request.
  Writer.noteAllRead();
  return received();
}

Expected<bool> PipeClient::waitReadable(Deadline Until) {
  // If the peer's process is unknown, watch for the end of the pipe that the
  // peer reads.
  pollfd FDs[3] = {{Read.get(), POLLIN, 0},
                   {PeerProcess.get(), POLLIN, 0},
                   {PeerProcess ? -1 : Writer.get(), 0, 0}};
  int Ready = ::poll(FDs, 3, Until.pollTimeout());
  if (Ready < 0 && errno != EINTR)
    return Error::fromErrno(errno, "cannot wait for " + Peer);
  return Ready > 0 && FDs[0].revents == 0 &&
         (FDs[1].revents != 0 || (FDs[2].revents & POLLERR) != 0);
}
