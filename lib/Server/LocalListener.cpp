//===- LocalListener.cpp - Where compilers of this machine arrive ---------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Server/BareListener.h"
#include "Server/SessionTable.h"
#include "Transport/Handshake.h"
#include "Transport/PipeChannel.h"
#include "Transport/SharedMemoryChannel.h"

#include <cerrno>
#include <optional>
#include <poll.h>

using namespace MLBridge;
using posix::UniqueFD;

namespace {

class LocalListener final : public Listener {
public:
  LocalListener(std::string Name, ListenerOptions Options, UnixListener Socket,
                std::optional<BareListener> Bare)
      : Name(std::move(Name)), Options(std::move(Options)),
        Socket(std::move(Socket)), Bare(std::move(Bare)) {}

  const std::string &name() const override { return Name; }
  void addPolls(std::vector<pollfd> &Watched) const override;
  Deadline wakeUp() const override;
  void admit(Span<const pollfd> Polled, SessionTable &Into) override;

private:
  /// A connection that has not said hello yet.
  struct PendingConnection {
    UniqueFD Socket;
    Deadline Until;
  };

  void acceptConnections();
  /// False when the connection is done with, one way or the other.
  bool handshake(PendingConnection &C, SessionTable &Into);
  Error accept(PendingConnection &C, const Hello &H, SessionTable &Into);
  Expected<std::unique_ptr<ServerChannel>> makePipes(PendingConnection &C,
                                                     int Version,
                                                     UniqueFD Process,
                                                     const std::string &Peer);
  Expected<std::unique_ptr<ServerChannel>>
  makeSharedMemory(PendingConnection &C, int Version, UniqueFD Process,
                   const std::string &Peer);
  static Error sendTerms(const PendingConnection &C, int Version,
                         Span<const int> Descriptors);

  std::string Name;
  ListenerOptions Options;
  UnixListener Socket;
  std::optional<BareListener> Bare;
  std::vector<PendingConnection> Pending;
  /// Until then no connection is accepted: descriptors have run out.
  std::optional<Deadline> ShutUntil;
};

} // namespace

Expected<std::unique_ptr<Listener>>
MLBridge::openLocalListener(std::string Name, std::string BareFormat,
                            ListenerOptions Options) {
  if (Name.empty())
    return Error(ErrorCode::InvalidArgument,
                 "a server needs a name, such as /tmp/advisor");
  Expected<UnixListener> Socket = UnixListener::listen(Name + ".sock");
  if (!Socket)
    return Socket.takeError();
  // After the socket, which a compiler of ours looks for first.
  std::optional<BareListener> Bare;
  if (!BareFormat.empty()) {
    Expected<BareListener> Opened = BareListener::open(
        posix::absolutePath(Name), std::move(BareFormat), Options);
    if (!Opened)
      return Opened.takeError();
    Bare.emplace(std::move(*Opened));
  }
  return std::make_unique<LocalListener>(std::move(Name), std::move(Options),
                                         std::move(*Socket), std::move(Bare));
}

//===----------------------------------------------------------------------===//
// Who is there
//===----------------------------------------------------------------------===//

void LocalListener::addPolls(std::vector<pollfd> &Watched) const {
  Watched.push_back({ShutUntil ? -1 : Socket.socket(), POLLIN, 0});
  for (const PendingConnection &C : Pending)
    Watched.push_back({C.Socket.get(), POLLIN, 0});
  if (Bare)
    Bare->addPolls(Watched);
}

Deadline LocalListener::wakeUp() const {
  Deadline Until = Bare ? Bare->wakeUp() : Deadline::never();
  if (ShutUntil)
    Until = Until.orEarlier(*ShutUntil);
  for (const PendingConnection &C : Pending)
    Until = Until.orEarlier(C.Until);
  return Until;
}

void LocalListener::admit(Span<const pollfd> Polled, SessionTable &Into) {
  Span<const pollfd> OfBare = Polled.subspan(1 + Pending.size());
  if (ShutUntil && ShutUntil->expired())
    ShutUntil.reset();
  if (Polled.front().revents != 0)
    acceptConnections();
  std::erase_if(Pending,
                [&](PendingConnection &C) { return !handshake(C, Into); });
  if (Bare)
    Bare->admit(OfBare, Into);
}

void LocalListener::acceptConnections() {
  while (!ShutUntil) {
    UniqueFD Connection = Socket.accept();
    if (!Connection) {
      if (errno == EMFILE || errno == ENFILE)
        ShutUntil = Deadline::in(std::chrono::milliseconds(100));
      if (errno != EINTR && errno != ECONNABORTED)
        break;
      continue;
    }
    Pending.push_back(
        {std::move(Connection), Deadline::in(Options.PeerTimeout)});
  }
}

bool LocalListener::handshake(PendingConnection &C, SessionTable &Into) {
  Packet FromPeer;
  Expected<PacketState> State = receivePacket(C.Socket.get(), FromPeer);
  if (State && *State == PacketState::Ended)
    return false;
  if (State && *State == PacketState::None)
    return !C.Until.expired();

  Expected<Hello> H =
      State ? Hello::decode(FromPeer.Text) : Expected<Hello>(State.takeError());
  Error Refusal = H ? accept(C, *H, Into) : H.takeError();
  if (Refusal) {
    Terms Reply;
    Reply.Refusal = Refusal.message();
    (void)bool(sendPacket(C.Socket.get(), Reply.encode(), {}));
    Into.refuse(std::move(Refusal));
  }
  return false;
}

//===----------------------------------------------------------------------===//
// The handshake
//===----------------------------------------------------------------------===//

Error LocalListener::accept(PendingConnection &C, const Hello &H,
                            SessionTable &Into) {
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
  UniqueFD Process = posix::processOfPeer(C.Socket.get(), Who.Pid);
  Expected<std::unique_ptr<ServerChannel>> Channel =
      H.Transport == "pipe"
          ? makePipes(C, *Version, std::move(Process), Who.describe())
      : H.Transport == "shm"
          ? makeSharedMemory(C, *Version, std::move(Process), Who.describe())
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

Error LocalListener::sendTerms(const PendingConnection &C, int Version,
                               Span<const int> Descriptors) {
  Terms Agreed;
  Agreed.Version = Version;
  return sendPacket(C.Socket.get(), Agreed.encode(), Descriptors);
}

Expected<std::unique_ptr<ServerChannel>>
LocalListener::makePipes(PendingConnection &C, int Version, UniqueFD Process,
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
  if (Error E = sendTerms(C, Version, TheirEnds))
    return E;
  PipeEnds Ends{std::move(FromCompiler->Read), std::move(ToCompiler->Write),
                std::move(Process),
                /*IsNumbered=*/Version >= ProtocolVersions::NumberedFrames};
  return std::make_unique<PipeChannel>(std::move(Ends), Peer,
                                       Options.MaxMessage);
}

Expected<std::unique_ptr<ServerChannel>>
LocalListener::makeSharedMemory(PendingConnection &C, int Version,
                                UniqueFD Process, const std::string &Peer) {
  if (Version < ProtocolVersions::PipeDoorbell)
    return Error(
        ErrorCode::Unsupported,
        versionRefusal(ProtocolVersions::Newest, std::to_string(Version)));
  Expected<SharedMemoryEnds> Ends = SharedMemoryEnds::create();
  if (!Ends)
    return Ends.takeError();
  const int Theirs[] = {Ends->Requests.descriptor(), Ends->Replies.descriptor(),
                        Ends->Doorbell.Write.get()};
  if (Error E = sendTerms(C, Version, Theirs))
    return E;
  // Only now: a refusal is told through it.
  Ends->Socket = std::move(C.Socket);
  Ends->PeerProcess = std::move(Process);
  return std::make_unique<SharedMemoryChannel>(std::move(*Ends), Peer,
                                               Options.MaxMessage);
}
