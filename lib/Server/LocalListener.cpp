//===- LocalListener.cpp - Listens at a Unix socket -----------------------===//
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
  void accept(Span<const pollfd> Polled, SessionTable &Sessions) override;

private:
  /// A connection whose compiler has not sent the first packet of the handshake
  /// yet.
  struct PendingConnection {
    UniqueFD Socket;
    Deadline Until;
  };

  void acceptConnections();
  /// Continues the handshake with \p C. Returns true if the handshake has not
  /// ended yet.
  bool handshake(PendingConnection &C, SessionTable &Sessions);
  Error begin(PendingConnection &C, const Hello &H, SessionTable &Sessions);
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
  /// If set, descriptors have run out, and no connection is accepted until this
  /// time.
  std::optional<Deadline> PausedUntil;
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
  // Create the FIFOs after the socket. Compilers that use this library first
  // look for the socket, so they must not find the FIFOs without a socket.
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
// Connections
//===----------------------------------------------------------------------===//

void LocalListener::addPolls(std::vector<pollfd> &Watched) const {
  Watched.push_back({PausedUntil ? -1 : Socket.socket(), POLLIN, 0});
  for (const PendingConnection &C : Pending)
    Watched.push_back({C.Socket.get(), POLLIN, 0});
  if (Bare)
    Bare->addPolls(Watched);
}

Deadline LocalListener::wakeUp() const {
  Deadline Until = Bare ? Bare->wakeUp() : Deadline::never();
  if (PausedUntil)
    Until = Until.orEarlier(*PausedUntil);
  for (const PendingConnection &C : Pending)
    Until = Until.orEarlier(C.Until);
  return Until;
}

void LocalListener::accept(Span<const pollfd> Polled, SessionTable &Sessions) {
  Span<const pollfd> BareFDs = Polled.subspan(1 + Pending.size());
  if (PausedUntil && PausedUntil->expired())
    PausedUntil.reset();
  if (Polled.front().revents != 0)
    acceptConnections();
  std::erase_if(Pending,
                [&](PendingConnection &C) { return !handshake(C, Sessions); });
  if (Bare)
    Bare->accept(BareFDs, Sessions);
}

void LocalListener::acceptConnections() {
  while (!PausedUntil) {
    UniqueFD Connection = Socket.accept();
    if (!Connection) {
      if (errno == EMFILE || errno == ENFILE)
        PausedUntil = Deadline::in(std::chrono::milliseconds(100));
      if (errno != EINTR && errno != ECONNABORTED)
        break;
      continue;
    }
    Pending.push_back(
        {std::move(Connection), Deadline::in(Options.PeerTimeout)});
  }
}

bool LocalListener::handshake(PendingConnection &C, SessionTable &Sessions) {
  Packet FromPeer;
  Expected<PacketState> State = receivePacket(C.Socket.get(), FromPeer);
  if (State && *State == PacketState::Ended)
    return false;
  if (State && *State == PacketState::None)
    return !C.Until.expired();

  Expected<Hello> H =
      State ? Hello::decode(FromPeer.Text) : Expected<Hello>(State.takeError());
  Error Refusal = H ? begin(C, *H, Sessions) : H.takeError();
  if (Refusal) {
    Terms Reply;
    Reply.Refusal = Refusal.message();
    (void)bool(sendPacket(C.Socket.get(), Reply.encode(), {}));
    Sessions.refuse(std::move(Refusal));
  }
  return false;
}

//===----------------------------------------------------------------------===//
// The handshake
//===----------------------------------------------------------------------===//

Error LocalListener::begin(PendingConnection &C, const Hello &H,
                           SessionTable &Sessions) {
  Expected<int> Version = H.chooseVersion();
  if (!Version)
    return Version.takeError();
  if (Error E = Sessions.checkRoom(Options.MaxSessions))
    return E;
  // Refuse the session if fewer than 16 descriptors are free. The session needs
  // 5 descriptors. The rest is for the model's files and for refused
  // connections.
  constexpr std::size_t Reserved = 16;
  if (posix::countFreeDescriptors(Reserved) < Reserved)
    return Error(ErrorCode::System,
                 "the model side has no descriptors for another session "
                 "(ulimit -n); try again later");
  Expected<std::unique_ptr<BaseSerDes>> Codec =
      Options.Formats.create(H.SerDes, SerDes::Side::Model);
  if (!Codec)
    return Codec.takeError();
  ServerSession::Identity Identity;
  Identity.AdviceType = H.AdviceType;
  Identity.Number = Sessions.nextNumber();
  UniqueFD Process = posix::processOfPeer(C.Socket.get(), Identity.Pid);
  Expected<std::unique_ptr<ServerChannel>> Channel =
      H.Transport == "pipe"
          ? makePipes(C, *Version, std::move(Process), Identity.describe())
      : H.Transport == "shm"
          ? makeSharedMemory(C, *Version, std::move(Process),
                             Identity.describe())
          : Error(ErrorCode::Unsupported, "this model supports the transports "
                                          "pipe and shm, not \"" +
                                              H.Transport + "\"");
  if (!Channel)
    return Channel.takeError();
  Sessions.add(
      std::make_unique<ServerSession>(std::move(Identity), std::move(*Channel),
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
  const int PeerEnds[] = {ToCompiler->Read.get(), FromCompiler->Write.get()};
  for (int End : PeerEnds)
    if (Error E = posix::letOthersOpen(End))
      return E;
  if (Error E = sendTerms(C, Version, PeerEnds))
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
  const int PeerEnds[] = {Ends->Requests.descriptor(),
                          Ends->Replies.descriptor(),
                          Ends->Doorbell.Write.get()};
  if (Error E = sendTerms(C, Version, PeerEnds))
    return E;
  // Move the socket only after the last possible error, because handshake()
  // sends a refusal through C.Socket.
  Ends->Socket = std::move(C.Socket);
  Ends->PeerProcess = std::move(Process);
  return std::make_unique<SharedMemoryChannel>(std::move(*Ends), Peer,
                                               Options.MaxMessage);
}
