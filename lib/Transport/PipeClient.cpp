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
// Asking
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
          Peer + " has sent something that nobody asked for: a reply that "
                 "came twice or too late?"};
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

Error PipeClient::lend(Span<const Span<const std::byte>> Pieces,
                       Deadline Until) {
  // Below, the system calls take longer than the copy.
  constexpr std::size_t WorthLending = std::size_t(16) << 10;
  ++Request;
  if (Error E = gather(Pieces))
    return E;
  return writeAll(
      Prefix[1] < WorthLending ? &PipeWriter::write : &PipeWriter::lend, Until);
}

Error PipeClient::waitWritable(Deadline Until) {
  pollfd FDs[2] = {{Writer.get(), POLLOUT, 0}, {PeerProcess.get(), POLLIN, 0}};
  if (WriteWait.spin([&] { return ::poll(FDs, 1, 0) > 0; }))
    return Error::success();
  int Ready = ::poll(FDs, 2, Until.pollTimeout());
  if (Ready < 0 && errno != EINTR)
    return Error::fromErrno(errno, "cannot wait for " + Peer);
  // A full pipe whose reader is dead: POLLERR when its end is closed, else the
  // process descriptor.
  if (Ready > 0)
    return FDs[0].revents & POLLOUT ? Error::success()
                                    : closed("while a message was sent to it");
  // Also after a signal: signals may come faster than the deadline.
  if (Until.expired())
    return Error(ErrorCode::Timeout,
                 Peer + " did not take a message before the deadline");
  return Error::success();
}

//===----------------------------------------------------------------------===//
// The answer
//===----------------------------------------------------------------------===//

Expected<Span<const std::byte>> PipeClient::receive(Deadline Until) {
  Expected<bool> P = false;
  auto Look = [&] {
    P = readFrame(Content::Reply);
    return !P || *P;
  };
  auto Probe = [&] { return hasInput() && Look(); };
  bool Done = ReadWait.spin(Probe);
  while (!Done) {
    Expected<bool> Gone = waitReadable(Until);
    if (!Gone)
      return Gone.takeError();
    // A process that is gone may have answered before.
    Done = Look() || (!*Gone && ReadWait.spin(Probe));
    if (Done)
      break;
    if (*Gone)
      return closed("before it answered");
    if (Until.expired())
      return Error(ErrorCode::Timeout,
                   Peer + " did not answer before the deadline");
  }
  if (!P)
    return P.takeError();
  // A peer that replies has read the request.
  Writer.noteReturn();
  return received();
}

Expected<bool> PipeClient::waitReadable(Deadline Until) {
  // A peer whose process is not known is watched by the pipe that it reads.
  pollfd FDs[3] = {{Read.get(), POLLIN, 0},
                   {PeerProcess.get(), POLLIN, 0},
                   {PeerProcess ? -1 : Writer.get(), 0, 0}};
  int Ready = ::poll(FDs, 3, Until.pollTimeout());
  if (Ready < 0 && errno != EINTR)
    return Error::fromErrno(errno, "cannot wait for " + Peer);
  return Ready > 0 && FDs[0].revents == 0 &&
         (FDs[1].revents != 0 || (FDs[2].revents & POLLERR) != 0);
}
