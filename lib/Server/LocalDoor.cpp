//===- LocalDoor.cpp - Where compilers of this machine arrive ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Server/BareDoor.h"
#include "Server/Reception.h"
#include "Transport/Meeting.h"
#include "Transport/PipeChannel.h"
#include "Transport/SharedMemoryChannel.h"

#include <cerrno>
#include <optional>
#include <poll.h>

using namespace MLBridge;
using posix::UniqueFD;

namespace {

class LocalDoor final : public Door {
public:
  LocalDoor(std::string Name, DoorOptions Options, UnixListener Meeting,
            std::optional<BareDoor> Bare)
      : Name(std::move(Name)), Options(std::move(Options)),
        Meeting(std::move(Meeting)), Bare(std::move(Bare)) {}

  const std::string &name() const override { return Name; }
  void addPolls(std::vector<pollfd> &Watched) const override;
  Deadline wakeUp() const override;
  void admit(Span<const pollfd> Polled, Reception &Into) override;

private:
  /// A connection that has not said hello yet.
  struct Guest {
    UniqueFD Socket;
    Deadline Until;
  };

  void acceptGuests();
  /// False when the guest is done with, one way or the other.
  bool welcome(Guest &G, Reception &Into);
  Error meet(Guest &G, const Hello &H, Reception &Into);
  Expected<std::unique_ptr<ServerChannel>>
  makePipes(Guest &G, int Version, UniqueFD Process, const std::string &Peer);
  Expected<std::unique_ptr<ServerChannel>>
  makeSharedMemory(Guest &G, int Version, UniqueFD Process,
                   const std::string &Peer);
  static Error sendTerms(const Guest &G, int Version,
                         Span<const int> Descriptors);

  std::string Name;
  DoorOptions Options;
  UnixListener Meeting;
  std::optional<BareDoor> Bare;
  std::vector<Guest> Guests;
  /// Until then no connection is accepted: descriptors have run out.
  std::optional<Deadline> ShutUntil;
};

} // namespace

Expected<std::unique_ptr<Door>> MLBridge::openLocalDoor(std::string Name,
                                                        std::string BareFormat,
                                                        DoorOptions Options) {
  if (Name.empty())
    return Error(ErrorCode::InvalidArgument,
                 "a server needs a name, such as /tmp/advisor");
  Expected<UnixListener> Meeting = UnixListener::listen(Name + ".sock");
  if (!Meeting)
    return Meeting.takeError();
  // After the socket, which a compiler of ours looks for first.
  std::optional<BareDoor> Bare;
  if (!BareFormat.empty()) {
    Expected<BareDoor> Opened = BareDoor::open(posix::absolutePath(Name),
                                               std::move(BareFormat), Options);
    if (!Opened)
      return Opened.takeError();
    Bare.emplace(std::move(*Opened));
  }
  return std::make_unique<LocalDoor>(std::move(Name), std::move(Options),
                                     std::move(*Meeting), std::move(Bare));
}

//===----------------------------------------------------------------------===//
// Who is there
//===----------------------------------------------------------------------===//

void LocalDoor::addPolls(std::vector<pollfd> &Watched) const {
  Watched.push_back({ShutUntil ? -1 : Meeting.socket(), POLLIN, 0});
  for (const Guest &G : Guests)
    Watched.push_back({G.Socket.get(), POLLIN, 0});
  if (Bare)
    Bare->addPolls(Watched);
}

Deadline LocalDoor::wakeUp() const {
  Deadline Until = Bare ? Bare->wakeUp() : Deadline::never();
  if (ShutUntil)
    Until = Until.orEarlier(*ShutUntil);
  for (const Guest &G : Guests)
    Until = Until.orEarlier(G.Until);
  return Until;
}

void LocalDoor::admit(Span<const pollfd> Polled, Reception &Into) {
  Span<const pollfd> OfBare = Polled.subspan(1 + Guests.size());
  if (ShutUntil && ShutUntil->expired())
    ShutUntil.reset();
  if (Polled.front().revents != 0)
    acceptGuests();
  std::erase_if(Guests, [&](Guest &G) { return !welcome(G, Into); });
  if (Bare)
    Bare->admit(OfBare, Into);
}

void LocalDoor::acceptGuests() {
  while (!ShutUntil) {
    UniqueFD Socket = Meeting.accept();
    if (!Socket) {
      if (errno == EMFILE || errno == ENFILE)
        ShutUntil = Deadline::in(std::chrono::milliseconds(100));
      if (errno != EINTR && errno != ECONNABORTED)
        break;
      continue;
    }
    Guests.push_back({std::move(Socket), Deadline::in(Options.PeerTimeout)});
  }
}

bool LocalDoor::welcome(Guest &G, Reception &Into) {
  Packet FromGuest;
  Expected<PacketState> State = receivePacket(G.Socket.get(), FromGuest);
  if (State && *State == PacketState::Ended)
    return false;
  if (State && *State == PacketState::None)
    return !G.Until.expired();

  Expected<Hello> H = State ? Hello::decode(FromGuest.Text)
                            : Expected<Hello>(State.takeError());
  Error Refusal = H ? meet(G, *H, Into) : H.takeError();
  if (Refusal) {
    Terms Answer;
    Answer.Refusal = Refusal.message();
    (void)bool(sendPacket(G.Socket.get(), Answer.encode(), {}));
    Into.refuse(std::move(Refusal));
  }
  return false;
}

//===----------------------------------------------------------------------===//
// The meeting
//===----------------------------------------------------------------------===//

Error LocalDoor::meet(Guest &G, const Hello &H, Reception &Into) {
  Expected<int> Version = H.chooseVersion();
  if (!Version)
    return Version.takeError();
  if (Error E = Into.checkRoom(Options.MaxSessions))
    return E;
  // A session takes five descriptors. Some stay free, for the model's own files
  // and for connections that are refused.
  constexpr std::size_t KeptFree = 16;
  if (posix::countFreeDescriptors(KeptFree) < KeptFree)
    return Error(ErrorCode::System,
                 "the model side has no descriptors for another session "
                 "(ulimit -n); try again later");
  Expected<std::unique_ptr<BaseSerDes>> Codec =
      Options.Formats.create(H.SerDes, SerDes::Side::Model);
  if (!Codec)
    return Codec.takeError();
  ServerSession::Identity Who;
  Who.AdviceType = H.AdviceType;
  Who.Number = Into.nextNumber();
  UniqueFD Process = posix::processOfPeer(G.Socket.get(), Who.Pid);
  Expected<std::unique_ptr<ServerChannel>> Channel =
      H.Transport == "pipe"
          ? makePipes(G, *Version, std::move(Process), Who.describe())
      : H.Transport == "shm"
          ? makeSharedMemory(G, *Version, std::move(Process), Who.describe())
          : Error(ErrorCode::Unsupported, "this model is reached by pipe or "
                                          "shm, not by \"" +
                                              H.Transport + "\"");
  if (!Channel)
    return Channel.takeError();
  Into.admit(
      std::make_unique<ServerSession>(std::move(Who), std::move(*Channel),
                                      std::move(*Codec), Options.PeerTimeout));
  return Error::success();
}

Error LocalDoor::sendTerms(const Guest &G, int Version,
                           Span<const int> Descriptors) {
  Terms Agreed;
  Agreed.Version = Version;
  return sendPacket(G.Socket.get(), Agreed.encode(), Descriptors);
}

Expected<std::unique_ptr<ServerChannel>>
LocalDoor::makePipes(Guest &G, int Version, UniqueFD Process,
                     const std::string &Peer) {
  Expected<posix::Pipe> ToCompiler = posix::makeLargePipe();
  if (!ToCompiler)
    return ToCompiler.takeError();
  Expected<posix::Pipe> FromCompiler = posix::makeLargePipe();
  if (!FromCompiler)
    return FromCompiler.takeError();
  const int TheirEnds[] = {ToCompiler->Read.get(), FromCompiler->Write.get()};
  for (int End : TheirEnds)
    if (Error E = posix::letOthersOpen(End))
      return E;
  if (Error E = sendTerms(G, Version, TheirEnds))
    return E;
  PipeEnds Ends{std::move(FromCompiler->Read), std::move(ToCompiler->Write),
                std::move(Process),
                /*IsNumbered=*/Version >= ProtocolVersions::NumberedFrames};
  return std::make_unique<PipeChannel>(std::move(Ends), Peer,
                                       Options.MaxMessage);
}

Expected<std::unique_ptr<ServerChannel>>
LocalDoor::makeSharedMemory(Guest &G, int Version, UniqueFD Process,
                            const std::string &Peer) {
  if (Version < ProtocolVersions::PipeDoorbell)
    return Error(
        ErrorCode::Unsupported,
        versionRefusal(ProtocolVersions::Newest, std::to_string(Version)));
  Expected<SharedMemoryEnds> Ends = SharedMemoryEnds::create();
  if (!Ends)
    return Ends.takeError();
  const int Theirs[] = {Ends->Questions.descriptor(),
                        Ends->Answers.descriptor(), Ends->Doorbell.Write.get()};
  if (Error E = sendTerms(G, Version, Theirs))
    return E;
  // Only now: a refusal is told through it.
  Ends->Socket = std::move(G.Socket);
  Ends->PeerProcess = std::move(Process);
  return std::make_unique<SharedMemoryChannel>(std::move(*Ends), Peer,
                                               Options.MaxMessage);
}
