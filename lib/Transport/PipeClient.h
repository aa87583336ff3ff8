//===- PipeClient.h - The compiler's end of two pipes -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PipeClient: asks, and waits for the answer.
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
  /// \p Peer names the other side in messages.
  PipeClient(PipeEnds Ends, std::string Peer, std::size_t MaxMessage)
      : PipeFrames(std::move(Ends), std::move(Peer), MaxMessage) {}

  /// Malformed if the peer has sent something before the next request, which
  /// would be taken for the reply. Only frames without numbers need this.
  Error checkSilence() const;
  /// Room for a request.
  Expected<Span<std::byte>> acquire(std::size_t Size) { return region(Size); }
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

private:
  /// Writes all of Gathered.
  Error writeAll(WriteFunction Write, Deadline Until);
  /// Sleeps until something happens; true when that is the peer's end.
  Expected<bool> waitReadable(Deadline Until);
  Error waitWritable(Deadline Until);

  AdaptiveWait ReadWait;
  AdaptiveWait WriteWait;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_PIPECLIENT_H
