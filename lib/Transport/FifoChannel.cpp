//===- FifoChannel.cpp - Frames over two non-blocking pipes -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transport/FifoChannel.h"

#include "Transport/MessageLimit.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <fcntl.h>
#include <unistd.h>

using namespace MLBridge;

static_assert(std::endian::native == std::endian::little,
              "the wire is little-endian, and so far so are we");

/// An announced length is believed up to this; beyond it, memory is taken only
/// as bytes arrive, so that a lie costs the liar as much as us.
static constexpr std::size_t TrustedSize = std::size_t(16) << 20;
static constexpr std::size_t FirstBuffer = std::size_t(64) << 10;

FifoChannel::FifoChannel(FifoEnds Ends, std::string Peer,
                         std::size_t MaxMessage)
    : Read(std::move(Ends.Read)), Writer(std::move(Ends.Write)),
      PeerProcess(std::move(Ends.PeerProcess)), IsNumbered(Ends.IsNumbered),
      Peer(std::move(Peer)), MaxMessage(MaxMessage) {}

Error FifoChannel::closed(const char *While) const {
  return Error(ErrorCode::PeerClosed,
               Peer + " ended or closed the channel " + While);
}

//===----------------------------------------------------------------------===//
// Sending
//===----------------------------------------------------------------------===//

Expected<Span<std::byte>> FifoChannel::acquire(std::size_t Size) {
  if (Error E = Out.grow(FrameBuffer::PrefixSize + Size, 0))
    return E;
  return Span<std::byte>(Out.data() + FrameBuffer::PrefixSize, Size);
}

Error FifoChannel::frame(std::size_t Size) {
  Prefix[0] = Request;
  Prefix[1] = Size;
  std::byte *Start = Out.data() - FrameBuffer::LeadSize;
  std::memcpy(Start, Prefix, sizeof(Prefix));
  Gathered.assign(1, {Out.data() - leadSize(), prefixSize() + Size});
  return checkMessageSize(Size, MaxMessage, Peer);
}

Error FifoChannel::gather(Span<const Span<const std::byte>> Pieces) {
  Prefix[0] = Request;
  Prefix[1] = 0;
  Gathered.assign(1, {IsNumbered ? &Prefix[0] : &Prefix[1], prefixSize()});
  for (Span<const std::byte> Piece : Pieces) {
    Gathered.push_back({const_cast<std::byte *>(Piece.data()), Piece.size()});
    Prefix[1] += Piece.size();
  }
  return checkMessageSize(Prefix[1], MaxMessage, Peer);
}

/// What follows the first \p NumBytes of \p Pieces.
static Span<iovec> skip(Span<iovec> Pieces, std::size_t NumBytes) {
  while (!Pieces.empty() && NumBytes >= Pieces.front().iov_len) {
    NumBytes -= Pieces.front().iov_len;
    Pieces = Pieces.subspan(1);
  }
  if (NumBytes != 0) {
    iovec &First = Pieces.front();
    First.iov_base = static_cast<std::byte *>(First.iov_base) + NumBytes;
    First.iov_len -= NumBytes;
  }
  return Pieces;
}

Error FifoChannel::writeSome(Span<iovec> &Pieces, WriteFunction Write) {
  while (!Pieces.empty()) {
    ssize_t Written = (Writer.*Write)(
        Pieces.subspan(0, std::min<std::size_t>(Pieces.size(), IOV_MAX)));
    if (Written >= 0)
      Pieces = skip(Pieces, static_cast<std::size_t>(Written));
    else if (errno == EAGAIN)
      break;
    else if (errno == EPIPE)
      return closed("while a message was sent to it");
    else if (errno != EINTR)
      return Error::fromErrno(errno, "cannot write to " + Peer);
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// The compiler's end
//===----------------------------------------------------------------------===//

Error FifoChannel::writeAll(WriteFunction Write, Deadline Until) {
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

Error FifoChannel::checkSilence() const {
  if (IsNumbered)
    return Error::success();
  pollfd FD{Read.get(), POLLIN, 0};
  if (::poll(&FD, 1, 0) <= 0 || !(FD.revents & POLLIN))
    return Error::success();
  return {ErrorCode::Malformed,
          Peer + " has sent something that nobody asked for: a reply that "
                 "came twice or too late?"};
}

Error FifoChannel::sendRegion(std::size_t Size, Deadline Until) {
  ++Request;
  if (Error E = frame(Size))
    return E;
  return writeAll(&PipeWriter::write, Until);
}

Error FifoChannel::sendPieces(Span<const Span<const std::byte>> Pieces,
                              Deadline Until) {
  ++Request;
  if (Error E = gather(Pieces))
    return E;
  return writeAll(&PipeWriter::write, Until);
}

Error FifoChannel::lend(Span<const Span<const std::byte>> Pieces,
                        Deadline Until) {
  // Below, the system calls take longer than the copy.
  constexpr std::size_t WorthLending = std::size_t(16) << 10;
  ++Request;
  if (Error E = gather(Pieces))
    return E;
  return writeAll(
      Prefix[1] < WorthLending ? &PipeWriter::write : &PipeWriter::lend, Until);
}

Error FifoChannel::waitWritable(Deadline Until) {
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
// The model's end
//===----------------------------------------------------------------------===//

Error FifoChannel::writeAnswer(Span<iovec> &Left) {
  Error E = writeSome(Left, &PipeWriter::write);
  // A compiler that gives a question up closes its session, and may live on.
  if (E.code() == ErrorCode::PeerClosed)
    return {ErrorCode::PeerClosed,
            Peer + " no longer waits for the answer: it ended, or its "
                   "`timeout` passed"};
  return E;
}

Error FifoChannel::commit(std::size_t Size, Duration Within) {
  if (Error E = frame(Size))
    return E;
  Span<iovec> Left = Gathered;
  IsInsideAnswer = true;
  if (Error E = writeAnswer(Left))
    return E;
  IsInsideAnswer = false;
  if (!Left.empty()) {
    Unsent = Left.front();
    UnsentWithin = Within;
    UnsentUntil = Deadline::in(Within);
  }
  return Error::success();
}

Error FifoChannel::send(Span<const Span<const std::byte>> Pieces,
                        Duration Within) {
  if (Error E = gather(Pieces))
    return E;
  Span<iovec> Left = Gathered;
  IsInsideAnswer = true;
  if (Error E = writeAnswer(Left))
    return E;
  if (Left.empty()) {
    IsInsideAnswer = false;
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
  IsInsideAnswer = false;
  Unsent = {Out.data(), NumLeft};
  UnsentWithin = Within;
  UnsentUntil = Deadline::in(Within);
  return Error::success();
}

Error FifoChannel::flush() {
  const std::size_t Before = Unsent.iov_len;
  Span<iovec> Left(&Unsent, 1);
  if (Error E = writeAnswer(Left))
    return E;
  if (Left.empty()) {
    Unsent = {};
    UnsentUntil = Deadline::never();
  } else if (Unsent.iov_len != Before) {
    // Who takes some of it is there, however slow.
    UnsentUntil = Deadline::in(UnsentWithin);
  } else if (UnsentUntil.expired()) {
    return Error(ErrorCode::Timeout,
                 Peer + " did not take its answer before the deadline");
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Receiving
//===----------------------------------------------------------------------===//

Span<const std::byte> FifoChannel::message() const {
  return {In.data() + FrameBuffer::PrefixSize, FrameSize - prefixSize()};
}

bool FifoChannel::isReadable() const {
  pollfd FD{Read.get(), POLLIN, 0};
  return ::poll(&FD, 1, 0) != 0;
}

std::uint64_t FifoChannel::numberRead() const {
  std::uint64_t Number = 0;
  if (IsNumbered)
    std::memcpy(&Number, In.data() - FrameBuffer::LeadSize, sizeof(Number));
  return Number;
}

Expected<FifoChannel::Progress> FifoChannel::advance() {
  Expected<Progress> P = readFrame(Content::Request);
  if (P && *P == Progress::Complete)
    Request = numberRead();
  return P;
}

Error FifoChannel::checkPrefix(Content What) {
  // Before the length, which is none where a peer leaves out the number.
  if (What == Content::Reply && IsNumbered && numberRead() != Request)
    return Error(
        ErrorCode::Malformed,
        Peer + " answered request " + std::to_string(numberRead()) +
            ", expected " + std::to_string(Request) +
            ": a reply that came twice, or a frame without its number?");
  std::uint64_t Announced;
  std::memcpy(&Announced, In.data(), sizeof(Announced));
  if (Announced > MaxMessage)
    return Error(ErrorCode::Malformed,
                 Peer + " announced a message of " + std::to_string(Announced) +
                     " bytes; the limit is " + std::to_string(MaxMessage) +
                     " (max-message)");
  FrameSize = prefixSize() + Announced;
  return Error::success();
}

Expected<FifoChannel::Progress> FifoChannel::readFrame(Content What) {
  if (Consumed) {
    Received = 0;
    FrameSize = 0;
    Consumed = false;
    if (Error E = In.grow(FirstBuffer, 0))
      return E;
  }
  for (;;) {
    std::byte *Frame = In.data() - leadSize();
    const std::size_t Room = leadSize() + In.capacity();
    ssize_t Got = ::read(Read.get(), Frame + Received, Room - Received);
    if (Got < 0) {
      if (errno == EINTR)
        continue;
      if (errno == EAGAIN)
        return Progress::Incomplete;
      return Error::fromErrno(errno, "cannot read from " + Peer);
    }
    if (Got == 0) {
      // A FIFO that nobody has opened for writing yet reads as ended, too.
      if (!isReadable())
        return Progress::Incomplete;
      if (Received == 0)
        return closed("between two messages");
      return Error(ErrorCode::PeerClosed,
                   Peer + " ended or closed the channel inside a message: " +
                       "expected " +
                       std::to_string(FrameSize ? FrameSize : prefixSize()) +
                       (FrameSize ? "" : " and more") + " bytes, found " +
                       std::to_string(Received));
    }
    Received += static_cast<std::size_t>(Got);

    if (FrameSize == 0) {
      if (Received < prefixSize())
        continue;
      if (Error E = checkPrefix(What))
        return E;
    }
    if (Received == FrameSize) {
      Consumed = true;
      // Parsers look at what is behind a message, whatever it is. With a value
      // it is nothing to a valgrind that watches the compiler.
      std::memset(Frame + FrameSize, 0, BaseSerDes::Padding);
      return Progress::Complete;
    }
    if (Received > FrameSize)
      return Error(ErrorCode::Malformed,
                   Peer + " sent " + std::to_string(Received - FrameSize) +
                       " bytes more than the " +
                       std::to_string(FrameSize - prefixSize()) +
                       " it announced: the same message twice?");
    if (FrameSize > Room) {
      std::size_t Wanted =
          std::min(FrameSize, std::max(TrustedSize, 2 * Received));
      if (Error E = In.grow(Wanted, Received))
        return E;
    }
  }
}

Expected<Span<const std::byte>> FifoChannel::receive(Deadline Until) {
  Expected<Progress> P = Progress::Incomplete;
  auto Look = [&] {
    P = readFrame(Content::Reply);
    return !P || *P == Progress::Complete;
  };
  auto Probe = [&] { return isReadable() && Look(); };
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
  return message();
}

void FifoChannel::fillPoll(pollfd *FDs) const {
  // What comes while an answer is not taken has to wait.
  FDs[0] = {isSending() ? -1 : Read.get(), POLLIN, 0};
  FDs[1] = {PeerProcess.get(), POLLIN, 0};
  // Only a peer whose process is not known has to be watched here for its end.
  FDs[2] = {PeerProcess && !isSending() ? -1 : Writer.get(),
            static_cast<short>(isSending() ? POLLOUT : 0), 0};
}

bool FifoChannel::peerIsGone(const pollfd *FDs) const {
  return FDs[1].revents != 0 || (FDs[2].revents & POLLERR) != 0;
}

Expected<bool> FifoChannel::waitReadable(Deadline Until) {
  pollfd FDs[NumPollFDs];
  fillPoll(FDs);
  int Ready = ::poll(FDs, NumPollFDs, Until.pollTimeout());
  if (Ready < 0 && errno != EINTR)
    return Error::fromErrno(errno, "cannot wait for " + Peer);
  return Ready > 0 && FDs[0].revents == 0 && peerIsGone(FDs);
}
