//===- FifoChannel.h - Frames over two non-blocking pipes -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FifoChannel: a pair of pipe ends that carries frames (an 8-byte length, then
/// the message) in both directions. The compiler's and the model's side use
/// the same class; only how they meet differs.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_FIFOCHANNEL_H
#define MLBRIDGE_LIB_TRANSPORT_FIFOCHANNEL_H

#include "MLCompilerBridge/AdaptiveWait.h"
#include "MLCompilerBridge/Deadline.h"
#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Span.h"
#include "Transport/FrameBuffer.h"
#include "Transport/PipeWriter.h"
#include "Transport/Posix.h"

#include <poll.h>
#include <vector>

namespace MLBridge {

/// Which pipes, and whose.
struct FifoEnds {
  posix::UniqueFD Read;
  posix::UniqueFD Write;
  /// Readable when the peer is dead; none for a bare peer, who is not known.
  posix::UniqueFD PeerProcess;
};

/// After an error the channel is broken: destroy it.
class FifoChannel {
public:
  /// \p Peer names the other side in messages.
  FifoChannel(FifoEnds Ends, std::string Peer, std::size_t MaxMessage);

  /// Room for the next message to send.
  Expected<Span<std::byte>> acquire(std::size_t Size);
  /// Sends \p Size bytes of it.
  Error commit(std::size_t Size, Deadline Until);
  /// Sends a message that lies in pieces.
  Error send(Span<const Span<const std::byte>> Pieces, Deadline Until);
  /// The same for a message that is going to be answered: the pieces are used
  /// until the answer is received or this object is destroyed.
  Error lend(Span<const Span<const std::byte>> Pieces, Deadline Until);

  /// Waits for the next message.
  Expected<Span<const std::byte>> receive(Deadline Until);

  enum class Progress { Incomplete, Complete };
  /// Whether bytes, or their end, are there for advance() to take. For those
  /// who ask often: unlike a read of nothing, this leaves the pipe's lock to
  /// the writer.
  bool isReadable() const;
  /// Takes what has arrived, without waiting. After Complete, message() is the
  /// message, and the next call begins the next one.
  Expected<Progress> advance();
  Span<const std::byte> message() const;
  /// Whether a message has begun to arrive and not ended.
  bool isInsideMessage() const { return !Consumed && Received != 0; }
  /// Whether anybody has the other end of what is read here open, or has left
  /// something in it. Not for those who ask often.
  bool hasWriter() const;
  /// The memory of message(), for those who keep views of it.
  const FrameBuffer &receiveBuffer() const { return In; }

  /// What poll(2) should watch while nothing arrives: the read end, the peer's
  /// process, and the write end, whose reader may vanish.
  static constexpr std::size_t NumPollFDs = 3;
  void fillPoll(pollfd *FDs) const;
  /// Whether the peer is gone for good, as far as poll could tell; what it
  /// sent before may still be there.
  static bool peerIsGone(const pollfd *FDs);

private:
  Error checkSize(std::size_t Size) const;
  Error gather(Span<const Span<const std::byte>> Pieces);
  using WriteFunction = ssize_t (PipeWriter::*)(Span<const iovec>);
  /// Writes a frame; \p Pieces is used up.
  Error write(Span<iovec> Pieces, WriteFunction Write, Deadline Until);
  /// Sleeps until something happens; true when that is the peer's end.
  Expected<bool> waitReadable(Deadline Until);
  Error waitWritable(Deadline Until);
  Error closed(const char *While) const;

  posix::UniqueFD Read;
  PipeWriter Writer;
  posix::UniqueFD PeerProcess;
  std::string Peer;
  std::size_t MaxMessage;
  AdaptiveWait ReadWait;
  AdaptiveWait WriteWait;
  FrameBuffer Out;
  /// What send() and lend() write: the length, and the pieces.
  std::vector<iovec> Gathered;
  std::uint64_t GatheredSize = 0;
  FrameBuffer In;
  /// Bytes of the current frame that are in In, its length prefix included.
  std::size_t Received = 0;
  /// The frame's size with its prefix; 0 until the prefix is there.
  std::size_t FrameSize = 0;
  bool Consumed = true;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_FIFOCHANNEL_H
