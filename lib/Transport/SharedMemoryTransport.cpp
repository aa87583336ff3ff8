//===- SharedMemoryTransport.cpp - The compiler's end ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/SharedMemoryTransport.h"

#include "Transport/Meeting.h"
#include "Transport/SharedMemoryChannel.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <poll.h>
#include <unistd.h>

using namespace MLBridge;
using posix::UniqueFD;

/// How long the peer's death may go unnoticed by who sleeps on a futex, which
/// cannot wait for a descriptor at the same time.
static constexpr std::chrono::milliseconds Slice(20);

namespace {

/// Everything that ends with the session.
struct Session {
  RegionWriter Questions;
  RegionReader Answers;
  UniqueFD Doorbell;
  UniqueFD Socket;
  UniqueFD PeerProcess;
  /// The number of the last question.
  std::uint32_t Asked = 0;
};

class SharedMemoryTransport final : public Transport {
public:
  SharedMemoryTransport(std::string Name, TransportOptions Options)
      : Name(std::move(Name)), Peer("shm:" + this->Name), Options(Options) {}

  Expected<SessionTerms> connect(const SessionRequest &Request,
                                 Deadline Until) override;
  bool isConnected() const override { return Open.has_value(); }
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
  AdaptiveWait Wait;
};

} // namespace

Expected<SessionTerms>
SharedMemoryTransport::connect(const SessionRequest &Request, Deadline Until) {
  Open.reset();
  for (Lookout Out;; Out.pause(Until)) {
    auto Meeting = tryMeet(Name, Peer, "shm", Request,
                           /*NumDescriptors=*/3, Until);
    if (!Meeting)
      return Meeting.takeError();
    if (*Meeting) {
      if (Error E = begin(std::move(**Meeting)))
        return E;
      return SessionTerms();
    }
    if (Until.expired())
      return Lookout::nobodyAt(
          Peer,
          posix::fileKind(Name + ".sock") == posix::FileKind::Socket
              ? "the socket " + Name + ".sock is there, but nobody listens"
              : "there is no " + Name + ".sock",
          Options.ConnectTimeout);
  }
}

Error SharedMemoryTransport::begin(Met Meeting) {
  auto &[Socket, Descriptors] = Meeting;
  Expected<SharedRegion> Questions =
      SharedRegion::open(std::move(Descriptors[0]), Peer);
  if (!Questions)
    return Questions.takeError();
  Expected<SharedRegion> Answers =
      SharedRegion::open(std::move(Descriptors[1]), Peer);
  if (!Answers)
    return Answers.takeError();
  pid_t Pid;
  UniqueFD Process = posix::processOfPeer(Socket.get(), Pid);
  Open.emplace(Session{RegionWriter(std::move(*Questions), Options.MaxMessage),
                       RegionReader(std::move(*Answers), Options.MaxMessage),
                       std::move(Descriptors[2]), std::move(Socket),
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
  if (*Sleeps) {
    const std::uint64_t Ring = 1;
    // It cannot be full: each ring is heard before the next question.
    (void)!::write(Open->Doorbell.get(), &Ring, sizeof(Ring));
  }
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
  if (Error E = Open->Answers.take(Open->Socket.get(), Peer))
    return E;
  return Open->Answers.message();
}

/// Sleeps until the answer is there.
Error SharedMemoryTransport::sleep(Deadline Until) {
  SharedRegion &Answers = Open->Answers.region();
  const std::uint32_t Last = Open->Asked - 1;
  Error Failure;
  Answers.setSleeping(true);
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
    if (Answers.sleep(Last, std::min<Duration>(Slice, Until.remaining())))
      continue;
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
