//===- PipeFrames.cpp - Frames over two non-blocking pipes ----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transport/PipeFrames.h"

#include "Transport/MessageLimit.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <poll.h>
#include <unistd.h>

using namespace MLBridge;

static_assert(std::endian::native == std::endian::little,
              "the wire format is little-endian");

/// Up to this size, all memory of a frame is allocated when its length arrives.
/// For a longer frame, the memory grows as bytes arrive, so that a false length
/// wastes no memory.
static constexpr std::size_t TrustedSize = std::size_t(16) << 20;
static constexpr std::size_t FirstBuffer = std::size_t(64) << 10;

PipeFrames::PipeFrames(PipeEnds Ends, std::string Peer, std::size_t MaxMessage)
    : Read(std::move(Ends.Read)), Writer(std::move(Ends.Write)),
      PeerProcess(std::move(Ends.PeerProcess)), IsNumbered(Ends.IsNumbered),
      Peer(std::move(Peer)), MaxMessage(MaxMessage) {}

Error PipeFrames::closed(const char *While) const {
  return Error(ErrorCode::PeerClosed,
               Peer + " ended or closed the channel " + While);
}

//===----------------------------------------------------------------------===//
// Sending
//===----------------------------------------------------------------------===//

Expected<Span<std::byte>> PipeFrames::region(std::size_t Size) {
  if (Error E = Out.grow(FrameBuffer::PrefixSize + Size, 0))
    return E;
  return Span<std::byte>(Out.data() + FrameBuffer::PrefixSize, Size);
}

Error PipeFrames::frame(std::size_t Size) {
  Prefix[0] = Request;
  Prefix[1] = Size;
  std::byte *Start = Out.data() - FrameBuffer::LeadSize;
  std::memcpy(Start, Prefix, sizeof(Prefix));
  Gathered.assign(1, {Out.data() - leadSize(), prefixSize() + Size});
  return checkMessageSize(Size, MaxMessage, Peer);
}

Error PipeFrames::gather(Span<const Span<const std::byte>> Pieces) {
  Prefix[0] = Request;
  Prefix[1] = 0;
  Gathered.assign(1, {IsNumbered ? &Prefix[0] : &Prefix[1], prefixSize()});
  for (Span<const std::byte> Piece : Pieces) {
    Gathered.push_back({const_cast<std::byte *>(Piece.data()), Piece.size()});
    Prefix[1] += Piece.size();
  }
  return checkMessageSize(Prefix[1], MaxMessage, Peer);
}

/// Returns \p Pieces without the first \p NumBytes bytes.
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

Error PipeFrames::writeSome(Span<iovec> &Pieces, WriteFunction Write) {
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
// Receiving
//===----------------------------------------------------------------------===//

Span<const std::byte> PipeFrames::received() const {
  return {In.data() + FrameBuffer::PrefixSize, FrameSize - prefixSize()};
}

bool PipeFrames::hasInput() const {
  pollfd FD{Read.get(), POLLIN, 0};
  return ::poll(&FD, 1, 0) != 0;
}

std::uint64_t PipeFrames::numberRead() const {
  std::uint64_t Number = 0;
  if (IsNumbered)
    std::memcpy(&Number, In.data() - FrameBuffer::LeadSize, sizeof(Number));
  return Number;
}

Error PipeFrames::checkPrefix(Content What) {
  // Check the number first. If the peer omitted the number, the length is
  // wrong, too, but the missing number is the cause.
  if (What == Content::Reply && IsNumbered && numberRead() != Request)
    return Error(ErrorCode::Malformed,
                 Peer + " answered request " + std::to_string(numberRead()) +
                     ", expected " + std::to_string(Request) +
                     ": a duplicate reply, or a frame without its number?");
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

Expected<bool> PipeFrames::readFrame(Content What) {
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
        return false;
      return Error::fromErrno(errno, "cannot read from " + Peer);
    }
    if (Got == 0) {
      // Call hasInput(), because read(2) also returns 0 for a FIFO that no
      // process has opened for writing yet.
      if (!hasInput())
        return false;
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
      // Initialize the padding, because parsers read past the message and
      // valgrind would report that.
      std::memset(Frame + FrameSize, 0, MessagePlacement::Padding);
      return true;
    }
    if (Received > FrameSize)
      return Error(ErrorCode::Malformed,
                   Peer + " sent " + std::to_string(Received - FrameSize) +
                       " bytes more than the " +
                       std::to_string(FrameSize - prefixSize()) +
                       " it announced: a duplicate message?");
    if (FrameSize > Room) {
      std::size_t Wanted =
          std::min(FrameSize, std::max(TrustedSize, 2 * Received));
      if (Error E = In.grow(Wanted, Received))
        return E;
    }
  }
}
