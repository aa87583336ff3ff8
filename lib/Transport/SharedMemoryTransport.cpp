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
#include "Transport/Meeting.h"
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
  RegionWriter Questions;
  RegionReader Answers;
  Doorbell Bell;
  UniqueFD Socket;
  UniqueFD PeerProcess;
  /// The number of the last question.
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
  Error begin(Met Meeting);
  Error sleep(Deadline Until);
  bool peerIsGone() const;

  std::string Name;
  /// For messages, and made once: it is handed on with every question.
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
  for (Lookout Out;; Out.pause(Until)) {
    auto Meeting = tryMeet(Name, Peer, Kind, Request, Until);
    if (!Meeting)
      return Meeting.takeError();
    if (*Meeting) {
      if (Error E = begin(std::move(**Meeting)))
        return E;
      return SessionTerms();
    }
    if (Until.expired()) {
      std::string Found = Lookout::whyNobodyAt(Name + ".sock");
      if (Found.empty())
        Found = "there is no " + printable(Name) + ".sock";
      return Lookout::nobodyAt(Peer, Found, Options.ConnectTimeout,
                               Request.Peer);
    }
  }
}

Error SharedMemoryTransport::begin(Met Meeting) {
  auto &[Socket, Descriptors, Version] = Meeting;
  Expected<SharedRegion> Questions =
      SharedRegion::open(std::move(Descriptors[0]), Peer);
  if (!Questions)
    return Questions.takeError();
  Expected<SharedRegion> Answers =
      SharedRegion::open(std::move(Descriptors[1]), Peer);
  if (!Answers)
    return Answers.takeError();
  Expected<Doorbell> Bell = Doorbell::open(Descriptors[2], Peer);
  if (!Bell)
    return Bell.takeError();
  pid_t Pid;
  UniqueFD Process = posix::processOfPeer(Socket.get(), Pid);
  Fork.claim();
  Open.emplace(Session{RegionWriter(std::move(*Questions), Options.MaxMessage),
                       RegionReader(std::move(*Answers), Options.MaxMessage),
                       std::move(*Bell), std::move(Socket),
                       std::move(Process)});
  return Error::success();
}

Expected<Span<std::byte>> SharedMemoryTransport::acquire(std::size_t Size) {
  if (!Open)
    return notConnected();
  return Open->Questions.acquire(Size, Open->Socket.get(), Peer);
}

Error SharedMemoryTransport::commit(std::size_t Size, Deadline) {
  if (!Open)
    return notConnected();
  Expected<bool> Sleeps = Open->Questions.post(Size, ++Open->Asked, Peer);
  if (!Sleeps)
    return Sleeps.takeError();
  if (*Sleeps)
    Open->Bell.ring();
  return Error::success();
}

Expected<Span<const std::byte>> SharedMemoryTransport::receive(Deadline Until) {
  if (!Open)
    return notConnected();
  SharedRegion &Answers = Open->Answers.region();
  auto IsThere = [&] { return Answers.sequence() == Open->Asked; };
  auto Probe = [&] {
    if (IsThere())
      return true;
    relax();
    return false;
  };
  // A model on this core cannot answer while we spin.
  constexpr unsigned ProbesPerClock = 16;
  bool MaySpin = !Answers.isWrittenOnThisCore();
  if (!IsThere() && !(MaySpin && Wait.spin(Probe, ProbesPerClock)))
    if (Error E = sleep(Until))
      return E;
  if (Error E = Open->Answers.take(Open->Asked, Open->Socket.get(), Peer))
    return E;
  return Open->Answers.message();
}

/// Sleeps until the answer is there.
Error SharedMemoryTransport::sleep(Deadline Until) {
  SharedRegion &Answers = Open->Answers.region();
  const std::uint32_t Last = Open->Asked - 1;
  Error Failure;
  Answers.setSleeping(true);
  // By the clock, not by how the sleep ended: signals may cut every one short.
  Deadline Look = Deadline::in(Slice);
  for (;;) {
    const std::uint32_t Now = Answers.sequence();
    if (Now == Open->Asked)
      break;
    if (Now != Last) {
      Failure = {ErrorCode::Malformed, Peer + " answered question " +
                                           std::to_string(Now) + ", expected " +
                                           std::to_string(Open->Asked)};
      break;
    }
    const Duration Left = Look.orEarlier(Until).remaining();
    if (Left > Duration::zero()) {
      Answers.sleep(Last, Left);
      continue;
    }
    Look = Deadline::in(Slice);
    const bool Gone = peerIsGone();
    // It may have answered before.
    if (Answers.sequence() != Last)
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
  Answers.setSleeping(false);
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
