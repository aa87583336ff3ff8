//===- PipeClient.h - The compiler's end of two pipes -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PipeClient: the compiler's end of a session through pipes. It sends requests
/// and waits for the replies.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_PIPECLIENT_H
#define MLBRIDGE_LIB_TRANSPORT_PIPECLIENT_H

#include "MLCompilerBridge/Deadline.h"
#include "MLCompilerBridge/Transport/AdaptiveWait.h"
#include "Transport/PipeFrames.h"

namespace MLBridge {

class PipeClient final : PipeFrames {
public:
  /// \p Peer is the name of the other side in error messages.
  PipeClient(PipeEnds Ends, std::string Peer, std::size_t MaxMessage)
      : PipeFrames(std::move(Ends), std::move(Peer), MaxMessage) {}

  /// Returns a Malformed error if the peer has sent a frame although no request
  /// is open. Without this check, the frame would be mistaken for the next
  /// reply. Frames with numbers do not need this check.
  Error checkSilence() const;
  Expected<Span<std::byte>> acquire(std::size_t Size) { return region(Size); }
  /// Sends the first \p Size bytes of the region that acquire() returned.
  Error sendRegion(std::size_t Size, Deadline Until);
  Error sendPieces(Span<const Span<const std::byte>> Pieces, Deadline Until);
  /// Sends the concatenation of \p Pieces like sendPieces(), but does not copy
  /// large messages. The pieces must stay valid until the reply is received or
  /// this object is destroyed.
  Error sendWithoutCopy(Span<const Span<const std::byte>> Pieces,
                        Deadline Until);
  /// Waits for the reply to the last request.
  Expected<Span<const std::byte>> receive(Deadline Until);
  /// Leaves unread spliced pages (see PipeWriter) in the pipe. A forked child
  /// calls this function because the pipe belongs to its parent.
  void disown() { Writer.disown(); }

private:
  Error writeAll(WriteFunction Write, Deadline Until);
  /// Sleeps until the pipe is readable, the peer ends, or \p Until passes.
  /// Returns true if the peer has ended.
  Expected<bool> waitReadable(Deadline Until);
  Error waitWritable(Deadline Until);

  AdaptiveWait ReadWait;
  AdaptiveWait WriteWait;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_PIPECLIENT_H
