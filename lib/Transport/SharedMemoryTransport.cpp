//===- SharedMemoryTransport.cpp - Shared memory, compiler's end ----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Transport/SharedMemoryTransport.h"

#include "Support/ForkDetector.h"
#include "Support/PrintableText.h"
#include "Transport/Handshake.h"
#include "Transport/SharedMemoryChannel.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <unistd.h>

using namespace MLBridge;
using posix::UniqueFD;

/// The interval at which a sleeping thread checks whether the peer has died. A
/// thread that sleeps on a futex cannot watch a descriptor at the same time.
static constexpr std::chrono::milliseconds CheckInterval(20);

namespace {

/// Wakes a model that sleeps in poll(2). Whatever the model does, ring()
/// neither blocks nor raises SIGPIPE.
class Doorbell {
public:
  static Expected<Doorbell> open(const UniqueFD &Received,
                                 const std::string &Peer);
  void ring() {
    // If the pipe is full, the write fails. Ignore that, because the doorbell
    // has already rung.
    const std::byte Ring{1};
    (void)!::write(Write.get(), &Ring, sizeof(Ring));
  }

private:
  Doorbell(UniqueFD Write, UniqueFD Read)
      : Write(std::move(Write)), Read(std::move(Read)) {}

  UniqueFD Write;
  /// The read end, which is never read. It ensures that the pipe always has a
  /// reader, so that ring() never raises SIGPIPE.
  UniqueFD Read;
};

struct Session {
  RegionWriter Requests;
  RegionReader Replies;
  Doorbell Bell;
  UniqueFD Socket;
  UniqueFD PeerProcess;
  std::uint32_t LastRequest = 0;
};

class SharedMemoryTransport final : public Transport {
public:
  SharedMemoryTransport(std::string Name, TransportOptions Options)
      : Name(std::move(Name)), Peer("shm:" + printable(this->Name)),
        Options(Options) {}

  Expected<SessionTerms> connect(const SessionRequest &Request,
                                 Deadline Until) override;
  bool isConnected() const override {
    return Open.has_value() && !Fork.isForked();
  }
  void close() override { Open.reset(); }

  Expected<Span<std::byte>> acquire(std::size_t Size) override;
  Error commit(std::size_t Size, Deadline Until) override;
  Expected<Span<const std::byte>> receive(Deadline Until) override;
  bool isShared() const override { return true; }
  std::string describe() const override { return Peer; }

private:
  Error notConnected() const {
    return {ErrorCode::PeerClosed, Peer + " is not connected"};
  }
  Error begin(HandshakeResult Result);
  Error sleep(Deadline Until);
  bool peerIsGone() const;

  std::string Name;
  /// The spec, for error messages. It is built once because every request uses
  /// it.
  std::string Peer;
  TransportOptions Options;
  std::optional<Session> Open;
  /// Detects a forked child. The session belongs to the parent.
  ForkDetector Fork;
  AdaptiveWait Wait;
};

} // namespace

Expected<Doorbell> Doorbell::open(const UniqueFD &Received,
                                  const std::string &Peer) {
  const std::string What = "the doorbell of " + Peer;
  Expected<UniqueFD> Write = posix::openOwnPipeEnd(Received, O_WRONLY, What);
  if (!Write)
    return Write.takeError();
  Expected<UniqueFD> Read = posix::openOtherPipeEnd(*Write, What);
  if (!Read)
    return Read.takeError();
  return Doorbell(std::move(*Write), std::move(*Read));
}

Expected<SessionTerms>
SharedMemoryTransport::connect(const SessionRequest &Request, Deadline Until) {
  static constexpr SessionKind Kind{"shm", ProtocolVersions::PipeDoorbell,
                                    /*NumDescriptors=*/3};
  Open.reset();
  for (Backoff Interval;; Interval.wait(Until)) {
    auto Result = tryHandshake(Name, Peer, Kind, Request, Until);
    if (!Result)
      return Result.takeError();
    if (*Result) {
      if (Error E = begin(std::move(**Result)))
        return E;
      return SessionTerms();
    }
    if (Until.expired()) {
      std::string Found = describeUnusedSocket(Name + ".sock");
      if (Found.empty())
        Found = printable(Name) + ".sock does not exist";
      return noListenerError(Peer, Found, Options.ConnectTimeout, Request.Peer);
    }
  }
}

Error SharedMemoryTransport::begin(HandshakeResult Result) {
  auto &[Socket, Descriptors, Version] = Result;
  Expected<SharedRegion> Requests =
      SharedRegion::open(std::move(Descriptors[0]), Peer);
  if (!Requests)
    return Requests.takeError();
  Expected<SharedRegion> Replies =
      SharedRegion::open(std::move(Descriptors[1]), Peer);
  if (!Replies)
    return Replies.takeError();
  Expected<Doorbell> Bell = Doorbell::open(Descriptors[2], Peer);
  if (!Bell)
    return Bell.takeError();
  pid_t Pid;
  UniqueFD Process = posix::processOfPeer(Socket.get(), Pid);
  Fork.claim();
  Open.emplace(Session{RegionWriter(std::move(*Requests), Options.MaxMessage),
                       RegionReader(std::move(*Replies), Options.MaxMessage),
                       std::move(*Bell), std::move(Socket),
                       std::move(Process)});
  return Error::success();
}

Expected<Span<std::byte>> SharedMemoryTransport::acquire(std::size_t Size) {
  if (!Open)
    return notConnected();
  return Open->Requests.acquire(Size, Open->Socket.get(), Peer);
}

Error SharedMemoryTransport::commit(std::size_t Size, Deadline) {
  if (!Open)
    return notConnected();
  Expected<bool> Sleeps = Open->Requests.post(Size, ++Open->LastRequest, Peer);
  if (!Sleeps)
    return Sleeps.takeError();
  if (*Sleeps)
    Open->Bell.ring();
  return Error::success();
}

Expected<Span<const std::byte>> SharedMemoryTransport::receive(Deadline Until) {
  if (!Open)
    return notConnected();
  SharedRegion &Replies = Open->Replies.region();
  auto HasReply = [&] { return Replies.sequence() == Open->LastRequest; };
  auto Probe = [&] {
    if (HasReply())
      return true;
    relax();
    return false;
  };
  // Do not spin if the model runs on this core. The model cannot reply while
  // this thread spins.
  constexpr unsigned ProbesPerClock = 16;
  bool MaySpin = !Replies.isWrittenOnThisCore();
  if (!HasReply() && !(MaySpin && Wait.spin(Probe, ProbesPerClock)))
    if (Error E = sleep(Until))
      return E;
  if (Error E = Open->Replies.take(Open->LastRequest, Open->Socket.get(), Peer))
    return E;
  return Open->Replies.message();
}

/// Sleeps until the reply has arrived.
Error SharedMemoryTransport::sleep(Deadline Until) {
  SharedRegion &Replies = Open->Replies.region();
  const std::uint32_t Last = Open->LastRequest - 1;
  Error Failure;
  Replies.setSleeping(true);
  // Read the clock, because signals may interrupt every sleep before its
  // time-out.
  Deadline NextCheck = Deadline::in(CheckInterval);
  for (;;) {
    const std::uint32_t Now = Replies.sequence();
    if (Now == Open->LastRequest)
      break;
    if (Now != Last) {
      Failure = {ErrorCode::Malformed, Peer + " answered request " +
                                           std::to_string(Now) + ", expected " +
                                           std::to_string(Open->LastRequest)};
      break;
    }
    const Duration Left = NextCheck.orEarlier(Until).remaining();
    if (Left > Duration::zero()) {
      Replies.sleep(Last, Left);
      continue;
    }
    NextCheck = Deadline::in(CheckInterval);
    const bool Gone = peerIsGone();
    // Check for a reply once more, because the peer may have replied before it
    // ended.
    if (Replies.sequence() != Last)
      continue;
    if (Gone)
      Failure = {ErrorCode::PeerClosed,
                 Peer + " ended or closed the channel before it answered"};
    else if (Until.expired())
      Failure = {ErrorCode::Timeout,
                 Peer + " did not answer before the deadline"};
    if (Failure)
      break;
  }
  Replies.setSleeping(false);
  return Failure;
}

bool SharedMemoryTransport::peerIsGone() const {
  pollfd FDs[2] = {{Open->PeerProcess.get(), POLLIN, 0},
                   {Open->Socket.get(), 0, 0}};
  return ::poll(FDs, 2, 0) > 0 &&
         (FDs[0].revents != 0 || (FDs[1].revents & (POLLHUP | POLLERR)) != 0);
}

std::unique_ptr<Transport>
MLBridge::createSharedMemoryTransport(std::string Name,
                                      TransportOptions Options) {
  return std::make_unique<SharedMemoryTransport>(std::move(Name), Options);
}
