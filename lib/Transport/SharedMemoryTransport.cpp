//===- SharedMemoryTransport.cpp - The compiler's end ---------------------===//
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

/// How long the peer's death may go unnoticed by who sleeps on a futex, which
/// cannot wait for a descriptor at the same time.
static constexpr std::chrono::milliseconds Slice(20);

namespace {

/// Wakes a model that sleeps in poll(2). Nothing that the model does to its end
/// makes ring() block or raise SIGPIPE.
class Doorbell {
public:
  static Expected<Doorbell> open(const UniqueFD &Received,
                                 const std::string &Peer);
  void ring() {
    // A full pipe has been rung often enough.
    const std::byte Ring{1};
    (void)!::write(Write.get(), &Ring, sizeof(Ring));
  }

private:
  Doorbell(UniqueFD Write, UniqueFD Read)
      : Write(std::move(Write)), Read(std::move(Read)) {}

  UniqueFD Write;
  /// Never read: it is there so that the pipe always has a reader.
  UniqueFD Read;
};

/// Everything that ends with the session.
struct Session {
  RegionWriter Requests;
  RegionReader Replies;
  Doorbell Bell;
  UniqueFD Socket;
  UniqueFD PeerProcess;
  /// The number of the last request.
  std::uint32_t Asked = 0;
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
  /// For messages, and made once: it is handed on with every request.
  std::string Peer;
  TransportOptions Options;
  std::optional<Session> Open;
  /// Tells a forked child that the session is its parent's.
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
  for (Backoff Out;; Out.pause(Until)) {
    auto Result = tryHandshake(Name, Peer, Kind, Request, Until);
    if (!Result)
      return Result.takeError();
    if (*Result) {
      if (Error E = begin(std::move(**Result)))
        return E;
      return SessionTerms();
    }
    if (Until.expired()) {
      std::string Found = Backoff::whyNoListenerAt(Name + ".sock");
      if (Found.empty())
        Found = "there is no " + printable(Name) + ".sock";
      return Backoff::noListenerAt(Peer, Found, Options.ConnectTimeout,
                                   Request.Peer);
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
  Expected<bool> Sleeps = Open->Requests.post(Size, ++Open->Asked, Peer);
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
  auto IsThere = [&] { return Replies.sequence() == Open->Asked; };
  auto Probe = [&] {
    if (IsThere())
      return true;
    relax();
    return false;
  };
  // A model on this core cannot answer while we spin.
  constexpr unsigned ProbesPerClock = 16;
  bool MaySpin = !Replies.isWrittenOnThisCore();
  if (!IsThere() && !(MaySpin && Wait.spin(Probe, ProbesPerClock)))
    if (Error E = sleep(Until))
      return E;
  if (Error E = Open->Replies.take(Open->Asked, Open->Socket.get(), Peer))
    return E;
  return Open->Replies.message();
}

/// Sleeps until the answer is there.
Error SharedMemoryTransport::sleep(Deadline Until) {
  SharedRegion &Replies = Open->Replies.region();
  const std::uint32_t Last = Open->Asked - 1;
  Error Failure;
  Replies.setSleeping(true);
  // By the clock, not by how the sleep ended: signals may cut every one short.
  Deadline Look = Deadline::in(Slice);
  for (;;) {
    const std::uint32_t Now = Replies.sequence();
    if (Now == Open->Asked)
      break;
    if (Now != Last) {
      Failure = {ErrorCode::Malformed, Peer + " answered request " +
                                           std::to_string(Now) + ", expected " +
                                           std::to_string(Open->Asked)};
      break;
    }
    const Duration Left = Look.orEarlier(Until).remaining();
    if (Left > Duration::zero()) {
      Replies.sleep(Last, Left);
      continue;
    }
    Look = Deadline::in(Slice);
    const bool Gone = peerIsGone();
    // It may have answered before.
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
