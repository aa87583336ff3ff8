//===- SharedMemoryChannel.cpp - Messages in shared memory ----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transport/SharedMemoryChannel.h"

#include "Transport/Handshake.h"
#include "Transport/MessageLimit.h"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

using namespace MLBridge;
using posix::UniqueFD;

/// The capacity of a session's first regions. Unused capacity uses no memory,
/// because the kernel allocates a page when it is first written.
static constexpr std::size_t FirstRegion = std::size_t(1) << 20;

//===----------------------------------------------------------------------===//
// One direction
//===----------------------------------------------------------------------===//

Expected<Span<std::byte>> RegionWriter::acquire(std::size_t Size, int Socket,
                                                const std::string &Reader) {
  if (Size > Region.capacity()) {
    Expected<SharedRegion> Larger =
        SharedRegion::create(std::max(Size, 2 * Region.capacity()));
    if (!Larger)
      return Larger.takeError();
    const int Memory = Larger->descriptor();
    if (Error E = sendPacket(Socket, Terms().encode(), {&Memory, 1}))
      return Error(ErrorCode::PeerClosed,
                   Reader + " did not accept a larger region: " + E.message());
    Region = std::move(*Larger);
  }
  return Span<std::byte>(Region.message(), Region.capacity());
}

Expected<bool> RegionWriter::post(std::size_t Size, std::uint32_t Sequence,
                                  const std::string &Reader) {
  if (Error E = checkMessageSize(Size, MaxMessage, Reader))
    return E;
  bool Sleeps = Region.post(Size, Sequence);
  if (!Region.isSameAs(LastPosted)) {
    Sleeps = LastPosted.post(SharedRegion::Moved, Sequence);
    // Wake the reader through the old region, where it sleeps. After that, the
    // reader waits on the new region.
    if (Sleeps)
      LastPosted.wake();
    LastPosted = Region;
  }
  return Sleeps;
}

Error RegionReader::take(std::uint32_t Sequence, int Socket,
                         const std::string &Writer) {
  std::uint64_t Length = Region.length();
  if (Length == SharedRegion::Moved) {
    // Use the last packet if there are several. The writer may have replaced
    // the region several times before it sent a message.
    Packet Moved;
    constexpr int MaxPackets = 16;
    for (int I = 0; I < MaxPackets; ++I) {
      Packet Next;
      Expected<PacketState> State = receivePacket(Socket, Next);
      if (!State || *State != PacketState::Arrived)
        break;
      Moved = std::move(Next);
    }
    if (Moved.HasLostDescriptors)
      return Error(ErrorCode::System,
                   "this process cannot open the descriptor of a larger region "
                   "of " +
                       Writer + ": too many open files (ulimit -n)");
    if (Moved.Descriptors.size() != 1)
      return Error(ErrorCode::Malformed,
                   Writer +
                       " announced a larger region: expected 1 descriptor, "
                       "found " +
                       std::to_string(Moved.Descriptors.size()));
    Expected<SharedRegion> Larger =
        SharedRegion::open(std::move(Moved.Descriptors.front()), Writer);
    if (!Larger)
      return Larger.takeError();
    // Reject a region with another number. The reader compares the region's
    // number with the last number, so it would read this message a second time.
    if (Larger->sequence() != Sequence)
      return Error(ErrorCode::Malformed,
                   Writer + " moved message " + std::to_string(Sequence) +
                       " to a larger region whose number is " +
                       std::to_string(Larger->sequence()));
    Region = std::move(*Larger);
    Length = Region.length();
  }
  if (Length > MaxMessage || Length > Region.capacity())
    return Error(ErrorCode::Malformed,
                 Writer + " announced a message of " + std::to_string(Length) +
                     " bytes; its region has room for " +
                     std::to_string(Region.capacity()) + ", and the limit is " +
                     std::to_string(MaxMessage) + " (max-message)");
  Size = Length;
  return Error::success();
}

//===----------------------------------------------------------------------===//
// The model's end
//===----------------------------------------------------------------------===//

Expected<SharedMemoryEnds> SharedMemoryEnds::create() {
  Expected<SharedRegion> Requests = SharedRegion::create(FirstRegion);
  if (!Requests)
    return Requests.takeError();
  Expected<SharedRegion> Replies = SharedRegion::create(FirstRegion);
  if (!Replies)
    return Replies.takeError();
  Expected<posix::Pipe> Doorbell = posix::makePipe();
  if (!Doorbell)
    return Doorbell.takeError();
  if (Error E = posix::letOthersOpen(Doorbell->Write.get()))
    return E;
  return SharedMemoryEnds{std::move(*Requests), std::move(*Replies),
                          std::move(*Doorbell), UniqueFD(), UniqueFD()};
}

Expected<ServerChannel::Progress> SharedMemoryChannel::advance() {
  const std::uint32_t Sequence = Requests.region().sequence();
  if (Sequence == LastRequest)
    return Progress::Incomplete;
  LastRequest = Sequence;
  if (Error E = Requests.take(Sequence, Socket.get(), Peer))
    return E;
  return Progress::Complete;
}

Error SharedMemoryChannel::commit(std::size_t Size, Duration) {
  Expected<bool> Sleeps = Replies.post(Size, LastRequest, Peer);
  if (Sleeps && *Sleeps)
    Replies.wake();
  return Sleeps.takeError();
}

void SharedMemoryChannel::fillPoll(pollfd *FDs) const {
  FDs[0] = {Doorbell.get(), POLLIN, 0};
  FDs[1] = {PeerProcess.get(), POLLIN, 0};
  // Request no events. poll(2) reports a closed socket anyway, and packets are
  // read only when a message announces them.
  FDs[2] = {Socket.get(), 0, 0};
}

bool SharedMemoryChannel::prepareToSleep() {
  Requests.region().setSleeping(true);
  return !isReadable();
}

void SharedMemoryChannel::wakeUp(const pollfd *FDs) {
  Requests.region().setSleeping(false);
  std::byte Rings[64];
  if (FDs[0].revents != 0)
    (void)!::read(Doorbell.get(), Rings, sizeof(Rings));
}

bool SharedMemoryChannel::peerIsGone(const pollfd *FDs) const {
  constexpr short IsClosed = POLLHUP | POLLERR;
  return FDs[1].revents != 0 || (FDs[0].revents & IsClosed) != 0 ||
         (FDs[2].revents & IsClosed) != 0;
}
