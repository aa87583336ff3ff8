//===- FifoChannel.h - Frames over two non-blocking pipes -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FifoChannel: a pair of pipe ends that carries frames in both directions: the
/// request's number where the handshake has agreed on numbers, an 8-byte
/// length, the message. The compiler's and the model's side use the same class;
/// only how they meet differs.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_FIFOCHANNEL_H
#define MLBRIDGE_LIB_TRANSPORT_FIFOCHANNEL_H

#include "MLCompilerBridge/Deadline.h"
#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Span.h"
#include "MLCompilerBridge/Transport/AdaptiveWait.h"
#include "Support/Posix.h"
#include "Transport/FrameBuffer.h"
#include "Transport/PipeWriter.h"
#include "Transport/ServerChannel.h"

#include <poll.h>
#include <vector>

namespace MLBridge {

/// Which pipes, and whose.
struct FifoEnds {
  posix::UniqueFD Read;
  posix::UniqueFD Write;
  /// Readable when the peer is dead; none for a bare peer, who is not known.
  posix::UniqueFD PeerProcess;
  /// Whether each frame begins with the number of its request, which the reply
  /// repeats: a late or doubled reply cannot answer another request then.
  bool IsNumbered = false;
};

class FifoChannel final : public ServerChannel {
public:
  /// \p Peer names the other side in messages.
  FifoChannel(FifoEnds Ends, std::string Peer, std::size_t MaxMessage);

  /// \name The compiler's end, which waits
  /// @{

  /// Malformed if the peer has sent something before the next request, which
  /// would be taken for the reply. Only frames without numbers need this.
  Error checkSilence() const;
  /// Sends \p Size bytes of the region that acquire() lent.
  Error sendRegion(std::size_t Size, Deadline Until);
  Error sendPieces(Span<const Span<const std::byte>> Pieces, Deadline Until);
  /// The same for a message that is going to be answered: the pieces are used
  /// until the answer is received or this object is destroyed.
  Error lend(Span<const Span<const std::byte>> Pieces, Deadline Until);
  /// Waits for the reply to the last request.
  Expected<Span<const std::byte>> receive(Deadline Until);
  /// Gives up what is lent and not read yet without taking it back: a forked
  /// child must leave the pipe to its parent.
  void disown() { Writer.disown(); }

  /// @}
  /// \name The model's end
  /// @{

  Expected<Span<std::byte>> acquire(std::size_t Size) override;
  Error commit(std::size_t Size, Duration Within) override;
  Error send(Span<const Span<const std::byte>> Pieces,
             Duration Within) override;
  bool isSending() const override { return Unsent.iov_len != 0; }
  bool isInsideAnswer() const override { return IsInsideAnswer; }
  Deadline unsentUntil() const override { return UnsentUntil; }
  Error flush() override;

  /// Unlike a read of nothing, this leaves the pipe's lock to the writer.
  bool isReadable() const override;
  Expected<Progress> advance() override;
  Span<const std::byte> message() const override;
  std::shared_ptr<const void> memory() const override { return In.share(); }
  bool isInsideMessage() const override { return !Consumed && Received != 0; }
  /// The read end, the peer's process, and the write end, whose reader may
  /// vanish or, when something is unsent, take it.
  void fillPoll(pollfd *FDs) const override;
  bool isReadable(const pollfd *FDs) const override {
    return FDs[0].revents != 0;
  }
  bool peerIsGone(const pollfd *FDs) const override;

  /// @}

private:
  /// Bytes of a frame before its length.
  std::size_t leadSize() const {
    return IsNumbered ? FrameBuffer::LeadSize : 0;
  }
  /// Bytes of a frame before its message.
  std::size_t prefixSize() const {
    return leadSize() + FrameBuffer::PrefixSize;
  }
  /// The region's first \p Size bytes as a frame in Gathered.
  Error frame(std::size_t Size);
  /// \p Pieces as a frame in Gathered.
  Error gather(Span<const Span<const std::byte>> Pieces);
  enum class Content { Request, Reply };
  /// Reads what has arrived of the next frame, which is to be a \p What.
  Expected<Progress> readFrame(Content What);
  /// The number of the frame that readFrame() has completed.
  std::uint64_t numberRead() const;
  /// What is wrong with the bytes that begin a frame, once they are there.
  Error checkPrefix(Content What);
  using WriteFunction = ssize_t (PipeWriter::*)(Span<const iovec>);
  /// Writes of \p Pieces what the pipe takes, and leaves the rest in it.
  Error writeSome(Span<iovec> &Pieces, WriteFunction Write);
  /// Writes all of Gathered.
  Error writeAll(WriteFunction Write, Deadline Until);
  /// Sleeps until something happens; true when that is the peer's end.
  Expected<bool> waitReadable(Deadline Until);
  Error waitWritable(Deadline Until);
  /// writeSome() for the model's end.
  Error writeAnswer(Span<iovec> &Left);
  Error closed(const char *While) const;

  posix::UniqueFD Read;
  PipeWriter Writer;
  posix::UniqueFD PeerProcess;
  const bool IsNumbered;
  std::string Peer;
  std::size_t MaxMessage;
  /// The number of the last request, and so of its reply.
  std::uint64_t Request = 0;
  AdaptiveWait ReadWait;
  AdaptiveWait WriteWait;
  FrameBuffer Out;
  /// A frame that lies in pieces: the prefix, and the message.
  std::vector<iovec> Gathered;
  /// The number and the length that begin it.
  std::uint64_t Prefix[2] = {};
  /// Whether a reply was sent in part and its rest is lost.
  bool IsInsideAnswer = false;
  /// What is left of a reply in Out, for flush().
  iovec Unsent{};
  Duration UnsentWithin{};
  Deadline UnsentUntil = Deadline::never();
  FrameBuffer In;
  /// Bytes of the current frame that are in In, its prefix included.
  std::size_t Received = 0;
  /// The frame's size with its prefix; 0 until the prefix is there.
  std::size_t FrameSize = 0;
  bool Consumed = true;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_FIFOCHANNEL_H
