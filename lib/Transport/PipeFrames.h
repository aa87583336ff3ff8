//===- PipeFrames.h - Frames over two non-blocking pipes --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PipeFrames: a pair of pipe ends that carries frames in both directions: the
/// request's number where the handshake has agreed on numbers, an 8-byte
/// length, the message. What the compiler's end (PipeClient) and the model's
/// (PipeChannel) have in common.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_PIPEFRAMES_H
#define MLBRIDGE_LIB_TRANSPORT_PIPEFRAMES_H

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Span.h"
#include "Support/Posix.h"
#include "Transport/FrameBuffer.h"
#include "Transport/PipeWriter.h"

#include <cstdint>
#include <string>
#include <vector>

namespace MLBridge {

/// Which pipes, and whose.
struct PipeEnds {
  posix::UniqueFD Read;
  posix::UniqueFD Write;
  /// Readable when the peer is dead; none for a bare peer, who is not known.
  posix::UniqueFD PeerProcess;
  /// Whether each frame begins with the number of its request, which the reply
  /// repeats: a late or doubled reply cannot answer another request then.
  bool IsNumbered = false;
};

/// Nothing here waits. After an error the pipes are of no more use.
class PipeFrames {
protected:
  /// \p Peer names the other side in messages.
  PipeFrames(PipeEnds Ends, std::string Peer, std::size_t MaxMessage);
  ~PipeFrames() = default;

  /// \name Sending
  /// @{

  /// Room for a message of \p Size bytes.
  Expected<Span<std::byte>> region(std::size_t Size);
  /// The region's first \p Size bytes as a frame in Gathered.
  Error frame(std::size_t Size);
  /// \p Pieces as a frame in Gathered.
  Error gather(Span<const Span<const std::byte>> Pieces);
  using WriteFunction = ssize_t (PipeWriter::*)(Span<const iovec>);
  /// Writes of \p Pieces what the pipe takes, and leaves the rest in it.
  Error writeSome(Span<iovec> &Pieces, WriteFunction Write);

  /// @}
  /// \name Receiving
  /// @{

  /// Whether the pipe has something, or has ended. Unlike a read of nothing,
  /// this leaves the pipe's lock to the writer.
  bool hasInput() const;
  enum class Content { Request, Reply };
  /// Reads what has arrived of the next frame, which is to be a \p What.
  /// Whether all of it is there.
  Expected<bool> readFrame(Content What);
  /// The message of the frame that readFrame() has completed, and its number.
  Span<const std::byte> received() const;
  std::uint64_t numberRead() const;
  /// Whether a frame has begun to arrive and not ended.
  bool isInsideFrame() const { return !Consumed && Received != 0; }

  /// @}

  Error closed(const char *While) const;

  posix::UniqueFD Read;
  PipeWriter Writer;
  posix::UniqueFD PeerProcess;
  const bool IsNumbered;
  std::string Peer;
  std::size_t MaxMessage;
  /// The number of the last request, and so of its reply.
  std::uint64_t Request = 0;
  FrameBuffer Out;
  FrameBuffer In;
  /// A frame that lies in pieces: the prefix, and the message.
  std::vector<iovec> Gathered;
  /// The number and the length that begin it.
  std::uint64_t Prefix[2] = {};

private:
  /// Bytes of a frame before its length.
  std::size_t leadSize() const {
    return IsNumbered ? FrameBuffer::LeadSize : 0;
  }
  /// Bytes of a frame before its message.
  std::size_t prefixSize() const {
    return leadSize() + FrameBuffer::PrefixSize;
  }
  /// What is wrong with the bytes that begin a frame, once they are there.
  Error checkPrefix(Content What);

  /// Bytes of the current frame that are in In, its prefix included.
  std::size_t Received = 0;
  /// The frame's size with its prefix; 0 until the prefix is there.
  std::size_t FrameSize = 0;
  bool Consumed = true;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_PIPEFRAMES_H
