//===- PipeChannel.h - The model's end of two pipes -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PipeChannel: the model's end of a session through pipes.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_PIPECHANNEL_H
#define MLBRIDGE_LIB_TRANSPORT_PIPECHANNEL_H

#include "Transport/PipeFrames.h"
#include "Transport/ServerChannel.h"

namespace MLBridge {

// PipeFrames is an implementation detail, so it is a private base class.
// NOLINTNEXTLINE(misc-multiple-inheritance)
class PipeChannel final : public ServerChannel, PipeFrames {
public:
  /// \p Peer is the name of the other side in error messages.
  PipeChannel(PipeEnds Ends, std::string Peer, std::size_t MaxMessage)
      : PipeFrames(std::move(Ends), std::move(Peer), MaxMessage) {}

  bool isReadable() const override { return hasInput(); }
  Expected<Progress> advance() override;
  Span<const std::byte> message() const override { return received(); }
  std::shared_ptr<const void> memory() const override { return In.share(); }
  bool isInsideMessage() const override { return isInsideFrame(); }

  Expected<Span<std::byte>> acquire(std::size_t Size) override {
    return region(Size);
  }
  Error commit(std::size_t Size, Duration Within) override;
  Error send(Span<const Span<const std::byte>> Pieces,
             Duration Within) override;
  bool isSending() const override { return Unsent.iov_len != 0; }
  bool isInsideReply() const override { return IsInsideReply; }
  Deadline unsentUntil() const override { return UnsentUntil; }
  Error flush() override;

  /// Watches the read end, the peer's process, and the write end. The write end
  /// reports that its reader has disappeared, or that it has room for unsent
  /// bytes.
  void fillPoll(pollfd *FDs) const override;
  bool isReadable(const pollfd *FDs) const override {
    return FDs[0].revents != 0;
  }
  bool peerIsGone(const pollfd *FDs) const override;

private:
  /// Calls writeSome() and rewords its error for a reply.
  Error writeReply(Span<iovec> &Left);

  /// True if a reply was sent in part and the rest is lost.
  bool IsInsideReply = false;
  /// The unsent rest of a reply, which flush() sends. The bytes are in Out.
  iovec Unsent{};
  Duration UnsentWithin{};
  Deadline UnsentUntil = Deadline::never();
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_PIPECHANNEL_H
