//===- SharedMemoryChannel.h - Messages in shared memory --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A session through shared memory. There are two regions, one per direction.
/// One side writes a region and the other side reads it in place. The socket of
/// the handshake stays open for two purposes:
/// - If a message does not fit its region, the writer creates a larger region
///   and sends its descriptor through the socket.
/// - Closing the socket ends the session.
///
/// The compiler waits for one reply, so it sleeps on the region's futex. The
/// model waits for all compilers at the same time, so it sleeps in poll(2). A
/// compiler that finds the model asleep therefore writes to a pipe, the
/// doorbell. An eventfd is not used as the doorbell, because both sides would
/// share its flags. The model could then make the compiler's write block.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_SHAREDMEMORYCHANNEL_H
#define MLBRIDGE_LIB_TRANSPORT_SHAREDMEMORYCHANNEL_H

#include "MLCompilerBridge/Transport/AdaptiveWait.h"
#include "Support/Posix.h"
#include "Transport/ServerChannel.h"
#include "Transport/SharedRegion.h"

#include <optional>
#include <string>

namespace MLBridge {

/// The writer's view of one direction of a session.
class RegionWriter {
public:
  RegionWriter(SharedRegion Region, std::size_t MaxMessage)
      : Region(std::move(Region)), MaxMessage(MaxMessage) {}

  /// Returns memory for \p Size bytes. If the region is too small, creates a
  /// larger region and sends its descriptor to \p Reader through \p Socket.
  Expected<Span<std::byte>> acquire(std::size_t Size, int Socket,
                                    const std::string &Reader);
  /// Publishes \p Size bytes. Returns true if the reader sleeps and must be
  /// woken.
  Expected<bool> post(std::size_t Size, std::uint32_t Sequence,
                      const std::string &Reader);
  /// Wakes a reader that sleeps on the futex.
  void wake() { LastPosted.wake(); }

private:
  SharedRegion Region;
  /// The region of the last message. The reader waits for the next message in
  /// this region.
  SharedRegion LastPosted = Region;
  std::size_t MaxMessage;
};

/// The reader's view of one direction of a session.
class RegionReader {
public:
  RegionReader(SharedRegion Region, std::size_t MaxMessage)
      : Region(std::move(Region)), MaxMessage(MaxMessage) {}

  SharedRegion &region() { return Region; }
  const SharedRegion &region() const { return Region; }
  /// Reads the message with number \p Sequence, which region() has announced.
  /// Switches to the new region if the writer has moved the message. Returns a
  /// Malformed error if the announcement is wrong, or a System error if this
  /// process cannot open the new region's descriptor.
  Error take(std::uint32_t Sequence, int Socket, const std::string &Writer);
  /// Returns the message of the last take().
  Span<const std::byte> message() const { return {Region.message(), Size}; }

private:
  SharedRegion Region;
  std::size_t MaxMessage;
  std::size_t Size = 0;
};

/// The resources of a session through shared memory.
struct SharedMemoryEnds {
  SharedRegion Requests;
  SharedRegion Replies;
  /// The doorbell. The model keeps the read end. The compiler receives the
  /// write end and opens it again, so that the two sides do not share its
  /// flags.
  posix::Pipe Doorbell;
  posix::UniqueFD Socket;
  posix::UniqueFD PeerProcess;

  /// Creates the regions and the doorbell of a new session, on the model side.
  static Expected<SharedMemoryEnds> create();
};

/// The model's end of a session through shared memory.
class SharedMemoryChannel final : public ServerChannel {
public:
  /// \p Peer is the name of the other side in error messages.
  SharedMemoryChannel(SharedMemoryEnds Ends, std::string Peer,
                      std::size_t MaxMessage)
      : Requests(std::move(Ends.Requests), MaxMessage),
        Replies(std::move(Ends.Replies), MaxMessage),
        Doorbell(std::move(Ends.Doorbell.Read)), Socket(std::move(Ends.Socket)),
        PeerProcess(std::move(Ends.PeerProcess)), Peer(std::move(Peer)) {}

  bool isReadable() const override {
    return Requests.region().sequence() != LastRequest;
  }
  Expected<Progress> advance() override;
  Span<const std::byte> message() const override { return Requests.message(); }
  bool isShared() const override { return true; }
  std::shared_ptr<const void> memory() const override {
    return Requests.region().share();
  }
  bool isInsideMessage() const override { return false; }

  Expected<Span<std::byte>> acquire(std::size_t Size) override {
    return Replies.acquire(Size, Socket.get(), Peer);
  }
  Error commit(std::size_t Size, Duration Within) override;

  void fillPoll(pollfd *FDs) const override;
  bool prepareToSleep() override;
  void wakeUp(const pollfd *FDs) override;
  bool isReadable(const pollfd *) const override { return isReadable(); }
  bool peerIsGone(const pollfd *FDs) const override;

private:
  RegionReader Requests;
  RegionWriter Replies;
  /// The read end of the doorbell.
  posix::UniqueFD Doorbell;
  posix::UniqueFD Socket;
  posix::UniqueFD PeerProcess;
  std::string Peer;
  /// The number of the last request. The reply gets the same number.
  std::uint32_t LastRequest = 0;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_SHAREDMEMORYCHANNEL_H
