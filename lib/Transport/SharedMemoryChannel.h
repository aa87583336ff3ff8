//===- SharedMemoryChannel.h - Messages in shared memory --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A session over shared memory: two regions, one a direction, each written by
/// one side and read in place by the other. The socket at which the two met
/// stays open: a message that outgrows its region moves to a larger one, whose
/// descriptor travels through it, and its end is the session's.
///
/// The compiler waits for one reply and sleeps on the reply's futex. The model
/// waits for all of its compilers at once, in poll(2), so a compiler that finds
/// it asleep writes to a pipe, the doorbell. Not to an eventfd: its flags are
/// those of both sides, so that a model could make the compiler's write block.
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

/// The side that writes a region.
class RegionWriter {
public:
  RegionWriter(SharedRegion Region, std::size_t MaxMessage)
      : Region(std::move(Region)), MaxMessage(MaxMessage) {}

  /// Room for \p Size bytes; where there is none, in a new region, which
  /// \p Socket takes to the reader.
  Expected<Span<std::byte>> acquire(std::size_t Size, int Socket,
                                    const std::string &Reader);
  /// Publishes \p Size bytes. True when the reader sleeps.
  Expected<bool> post(std::size_t Size, std::uint32_t Sequence,
                      const std::string &Reader);
  /// Wakes a reader that sleeps on the futex.
  void wake() { Seen.wake(); }

private:
  SharedRegion Region;
  /// Where the reader waits: the region of the last message.
  SharedRegion Seen = Region;
  std::size_t MaxMessage;
};

/// The side that reads it.
class RegionReader {
public:
  RegionReader(SharedRegion Region, std::size_t MaxMessage)
      : Region(std::move(Region)), MaxMessage(MaxMessage) {}

  SharedRegion &region() { return Region; }
  const SharedRegion &region() const { return Region; }
  /// Takes the message with that number, which region() announces, and follows
  /// it if it moved.
  Error take(std::uint32_t Sequence, int Socket, const std::string &Writer);
  /// What take() took.
  Span<const std::byte> message() const { return {Region.message(), Size}; }

private:
  SharedRegion Region;
  std::size_t MaxMessage;
  std::size_t Size = 0;
};

/// What a session over shared memory is made of.
struct SharedMemoryEnds {
  SharedRegion Requests;
  SharedRegion Replies;
  /// The compiler gets the end to write to, and reopens it.
  posix::Pipe Doorbell;
  posix::UniqueFD Socket;
  posix::UniqueFD PeerProcess;

  /// What the model's side makes for a new session: the memories and the
  /// doorbell.
  static Expected<SharedMemoryEnds> create();
};

/// The model's end.
class SharedMemoryChannel final : public ServerChannel {
public:
  /// \p Peer names the other side in messages.
  SharedMemoryChannel(SharedMemoryEnds Ends, std::string Peer,
                      std::size_t MaxMessage)
      : Requests(std::move(Ends.Requests), MaxMessage),
        Replies(std::move(Ends.Replies), MaxMessage),
        Doorbell(std::move(Ends.Doorbell.Read)), Socket(std::move(Ends.Socket)),
        PeerProcess(std::move(Ends.PeerProcess)), Peer(std::move(Peer)) {}

  bool isReadable() const override {
    return Requests.region().sequence() != Asked;
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
  /// The end to read from.
  posix::UniqueFD Doorbell;
  posix::UniqueFD Socket;
  posix::UniqueFD PeerProcess;
  std::string Peer;
  /// The number of the last request, and so of its answer.
  std::uint32_t Asked = 0;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_SHAREDMEMORYCHANNEL_H
