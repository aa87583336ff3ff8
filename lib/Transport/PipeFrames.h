//===- PipeFrames.h - Frames over two non-blocking pipes --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PipeFrames: frames through two pipes, one for each direction. A frame
/// consists of an 8-byte length and the message. If the handshake agreed on
/// numbers, the request's number precedes the length. PipeFrames is the common
/// base of PipeClient, the compiler's end, and PipeChannel, the model's end.
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

/// The pipe ends of a session, and a descriptor of the peer's process.
struct PipeEnds {
  posix::UniqueFD Read;
  posix::UniqueFD Write;
  /// A descriptor that becomes readable when the peer dies. Empty for a peer
  /// without a handshake, because its process is unknown.
  posix::UniqueFD PeerProcess;
  /// True if each frame begins with the number of its request. A reply repeats
  /// the number of its request. Therefore, a late or duplicate reply is never
  /// mistaken for the reply to another request.
  bool IsNumbered = false;
};

/// No function here blocks. After an error, the pipes must not be used again.
class PipeFrames {
protected:
  /// \p Peer is the name of the other side in error messages.
  PipeFrames(PipeEnds Ends, std::string Peer, std::size_t MaxMessage);
  ~PipeFrames() = default;

  /// \name Sending
  /// @{

  /// Returns a region for a message of \p Size bytes.
  Expected<Span<std::byte>> region(std::size_t Size);
  /// Makes Gathered describe a frame whose message is the first \p Size bytes
  /// of the region.
  Error frame(std::size_t Size);
  /// Makes Gathered describe a frame whose message is the concatenation of
  /// \p Pieces.
  Error gather(Span<const Span<const std::byte>> Pieces);
  using WriteFunction = ssize_t (PipeWriter::*)(Span<const iovec>);
  /// Writes as many bytes of \p Pieces as the pipe accepts, and removes these
  /// bytes from \p Pieces.
  Error writeSome(Span<iovec> &Pieces, WriteFunction Write);

  /// @}
  /// \name Receiving
  /// @{

  /// Returns true if the pipe has data or has ended. This function does not
  /// acquire the pipe's lock, so it never delays a writer as read(2) would.
  bool hasInput() const;
  enum class Content { Request, Reply };
  /// Reads the available part of the next frame. Returns true when the frame is
  /// complete. If the frame is a reply, its number must match the last request.
  Expected<bool> readFrame(Content What);
  /// Returns the message of the last complete frame.
  Span<const std::byte> received() const;
  /// Returns the number of the last complete frame, or 0 if frames have no
  /// numbers.
  std::uint64_t numberRead() const;
  /// Returns true if a frame has been received in part.
  bool isInsideFrame() const { return !Consumed && Received != 0; }

  /// @}

  Error closed(const char *While) const;

  posix::UniqueFD Read;
  PipeWriter Writer;
  posix::UniqueFD PeerProcess;
  const bool IsNumbered;
  std::string Peer;
  std::size_t MaxMessage;
  /// The number of the last request. The reply has the same number.
  std::uint64_t Request = 0;
  FrameBuffer Out;
  FrameBuffer In;
  /// The parts of the frame to send: its prefix, and the pieces of its message.
  std::vector<iovec> Gathered;
  /// The number and the length at the beginning of a frame.
  std::uint64_t Prefix[2] = {};

private:
  /// Returns the number of bytes of a frame before its length.
  std::size_t leadSize() const {
    return IsNumbered ? FrameBuffer::LeadSize : 0;
  }
  /// Returns the number of bytes of a frame before its message.
  std::size_t prefixSize() const {
    return leadSize() + FrameBuffer::PrefixSize;
  }
  /// Checks the prefix of a frame and sets FrameSize.
  Error checkPrefix(Content What);

  /// The received bytes of the current frame, including its prefix.
  std::size_t Received = 0;
  /// The size of the current frame in bytes, including its prefix. It is 0
  /// until the prefix has arrived.
  std::size_t FrameSize = 0;
  /// True if the next readFrame() begins a new frame.
  bool Consumed = true;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_PIPEFRAMES_H
