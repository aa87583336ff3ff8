//===- PipeFrames.h - Frames over two non-blocking pipes --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PipeFrames: frames over a pair of pipe ends, one for each direction. A frame
/// is the request's number, if the handshake agreed on numbers, then an 8-byte
/// length and the message. The common base of the compiler's end (PipeClient)
/// and the model's (PipeChannel).
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

/// The pipe ends of a session, and their peer.
struct PipeEnds {
  posix::UniqueFD Read;
  posix::UniqueFD Write;
  /// Readable when the peer is dead; empty for a bare peer, whose process is
  /// unknown.
  posix::UniqueFD PeerProcess;
  /// Whether each frame begins with the number of its request. The reply
  /// repeats the number, so a late or duplicate reply cannot answer another
  /// request.
  bool IsNumbered = false;
};

/// No function here blocks. After an error, the pipes must not be used again.
class PipeFrames {
protected:
  /// \p Peer names the other side in messages.
  PipeFrames(PipeEnds Ends, std::string Peer, std::size_t MaxMessage);
  ~PipeFrames() = default;

  /// \name Sending
  /// @{

  /// Returns a region for a message of \p Size bytes.
  Expected<Span<std::byte>> region(std::size_t Size);
  /// Makes Gathered a frame of the region's first \p Size bytes.
  Error frame(std::size_t Size);
  /// Makes Gathered a frame of \p Pieces.
  Error gather(Span<const Span<const std::byte>> Pieces);
  using WriteFunction = ssize_t (PipeWriter::*)(Span<const iovec>);
  /// Writes as much of \p Pieces as the pipe accepts, and removes it from \p
  /// Pieces.
  Error writeSome(Span<iovec> &Pieces, WriteFunction Write);

  /// @}
  /// \name Receiving
  /// @{

  /// Whether the pipe has data or has ended. Unlike read(2), this does not take
  /// the lock that the writer needs.
  bool hasInput() const;
  enum class Content { Request, Reply };
  /// Reads the available part of the next frame, a \p What. Returns true when
  /// the frame is complete.
  Expected<bool> readFrame(Content What);
  /// The message of the last complete frame, and its number.
  Span<const std::byte> received() const;
  std::uint64_t numberRead() const;
  /// Whether a frame has been received in part.
  bool isInsideFrame() const { return !Consumed && Received != 0; }

  /// @}

  Error closed(const char *While) const;

  posix::UniqueFD Read;
  PipeWriter Writer;
  posix::UniqueFD PeerProcess;
  const bool IsNumbered;
  std::string Peer;
  std::size_t MaxMessage;
  /// The number of the last request and of its reply.
  std::uint64_t Request = 0;
  FrameBuffer Out;
  FrameBuffer In;
  /// The pieces of a frame: the prefix and the message.
  std::vector<iovec> Gathered;
  /// The number and the length at the beginning of a frame.
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
  /// Checks the prefix of a frame and sets FrameSize.
  Error checkPrefix(Content What);

  /// Bytes of the current frame in In, including its prefix.
  std::size_t Received = 0;
  /// The frame's size including its prefix; 0 until the prefix has arrived.
  std::size_t FrameSize = 0;
  /// Whether the next readFrame() begins a new frame.
  bool Consumed = true;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_PIPEFRAMES_H
