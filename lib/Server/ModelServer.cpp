//===- ModelServer.cpp - The model's side of a session ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/ModelServer.h"
#include "Server/ServerSession.h"
#include "Transport/BarePipes.h"
#include "Transport/FifoChannel.h"
#include "Transport/Meeting.h"
#include "Transport/SharedMemoryChannel.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <poll.h>
#include <vector>

using namespace MLBridge;
using posix::UniqueFD;

ModelServer::~ModelServer() = default;

static TensorView namedText(std::string_view Name, std::string_view Text) {
  TensorView View;
  View.Name = Name;
  View.Type = ElementType::String;
  View.Data = Text.data();
  View.NumBytes = Text.size();
  return View;
}

Error ModelServer::replyError(std::string_view Message) {
  TensorView View = namedText(ReplyNames::Error, Message);
  return reply(Span<const TensorView>(&View, 1));
}

Error ModelServer::replyDeferred(std::string_view Why) {
  TensorView View = namedText(ReplyNames::Deferred, Why);
  return reply(Span<const TensorView>(&View, 1));
}

namespace {

class LocalServer final : public ModelServer {
public:
  LocalServer(std::string Name, ModelServerOptions Options, MeetingPoint Door)
      : Name(std::move(Name)), Options(std::move(Options)),
        Door(std::move(Door)) {}

  Error openBareDoor();

  Expected<Question> next(Deadline Until) override;
  Error reply(Span<const TensorView> Advice) override;
  Statistics statistics() const override;
  Error lastSessionError() const override { return LastError; }
  const std::string &name() const override { return Name; }

private:
  using Sessions = std::vector<std::unique_ptr<ServerSession>>;

  /// A connection that has not said hello yet.
  struct Guest {
    UniqueFD Socket;
    Deadline Until;
  };

  std::optional<Question> ask(ServerSession &Session);
  std::optional<Question> askOnly(bool MaySpin);
  std::optional<Question> askAnyone();
  void end(ServerSession &Session, Error Why);

  /// Waits for anything to happen, at most until \p Until.
  Error watch(Deadline Until);
  void acceptGuests();
  /// False when the guest is done with, one way or the other.
  bool welcome(Guest &G);
  Error admit(Guest &G, const Hello &H);
  Expected<std::unique_ptr<ServerChannel>> makePipes(Guest &G, UniqueFD Process,
                                                     const std::string &Peer);
  Expected<std::unique_ptr<ServerChannel>>
  makeSharedMemory(Guest &G, UniqueFD Process, const std::string &Peer);
  void admitBare();
  void watchBareNewcomer();
  /// Makes fresh FIFOs for the next compiler as soon as \p Session, if it is
  /// the newcomer, needs the names no more: it has begun to talk, so both are
  /// open, or it is gone. Not any later, or the next one would open these.
  void renewBareDoor(const ServerSession &Session);
  Deadline wakeUp(Deadline Until) const;

  std::string Name;
  ModelServerOptions Options;
  MeetingPoint Door;
  std::optional<BarePipePair> BareDoor;
  /// The session that has taken the ends of BareDoor, while its compiler may
  /// still have NAME.out to open; 0 for none.
  std::uint64_t BareNewcomer = 0;
  /// When it must have opened that.
  Deadline BareNewcomerUntil = Deadline::never();
  Deadline NextBareLook = Deadline::in(Duration::zero());
  std::vector<Guest> Guests;
  Sessions Open;
  /// Who asked last: answers go there, and it is likely to ask next.
  ServerSession *Current = nullptr;
  bool AwaitsReply = false;
  /// Whose turn it is when several ask.
  std::size_t Turn = 0;
  /// Questions of Current since the others were last looked at.
  unsigned InARow = 0;
  /// Whether the last next() ended in a time-out: then this one goes on
  /// waiting for the same question, and spinning again would be no news.
  bool Resumed = false;
  /// Until then no connection is accepted: descriptors have run out.
  std::optional<Deadline> DoorShut;
  /// How the only session is waited for; not its own, since it may end while
  /// it is.
  AdaptiveWait Wait;
  std::vector<pollfd> Watched;
  Statistics Counts;
  Error LastError;
};

/// Nobody may keep the others waiting for longer than this many questions.
constexpr unsigned MaxInARow = 64;
/// The kernel does not tell that somebody waits in open(2) at a FIFO, so the
/// bare door is looked at this often.
constexpr std::chrono::milliseconds BareDoorInterval(20);

} // namespace

Expected<std::unique_ptr<ModelServer>>
ModelServer::listen(std::string Name, ModelServerOptions Options) {
  if (Name.empty())
    return Error(ErrorCode::InvalidArgument,
                 "a server needs a name, such as /tmp/advisor");
  if (Options.Bare)
    if (auto Codec = Options.MakeSerDes(Options.BareFormat); !Codec)
      return Codec.takeError();
  Expected<MeetingPoint> Door = MeetingPoint::listen(Name + ".sock");
  if (!Door)
    return Door.takeError();
  auto Server = std::make_unique<LocalServer>(
      std::move(Name), std::move(Options), std::move(*Door));
  if (Error E = Server->openBareDoor())
    return E;
  return std::unique_ptr<ModelServer>(std::move(Server));
}

Error LocalServer::openBareDoor() {
  if (!Options.Bare)
    return Error::success();
  // The old pair goes first: its names are the new one's.
  BareDoor.reset();
  Expected<BarePipePair> Pair = BarePipePair::create(Name);
  if (!Pair)
    return Pair.takeError();
  BareDoor.emplace(std::move(*Pair));
  return Error::success();
}

ModelServer::Statistics LocalServer::statistics() const {
  Statistics S = Counts;
  S.Open = Open.size();
  return S;
}

//===----------------------------------------------------------------------===//
// Questions and replies
//===----------------------------------------------------------------------===//

Expected<ModelServer::Question> LocalServer::next(Deadline Until) {
  if (AwaitsReply)
    if (Error E = replyError("the model gave no answer to this question"))
      LastError = std::move(E);
  bool MaySpin = !std::exchange(Resumed, false);
  // With one compiler there is nobody else to look at: its pipe alone is read,
  // which is the whole of the fast path.
  if (Open.size() != 1 || ++InARow > MaxInARow) {
    InARow = 0;
    if (Error E = watch(Deadline::in(Duration::zero())))
      return E;
  }
  for (bool Looked = false;; Looked = true) {
    std::optional<Question> Q =
        Open.size() == 1 ? askOnly(MaySpin && !Looked) : askAnyone();
    if (Q)
      return *Q;
    if (Looked && Until.expired()) {
      Resumed = true;
      return Error(ErrorCode::Timeout, "no compiler asked the model at " +
                                           Name + " before the deadline");
    }
    if (Error E = watch(wakeUp(Until)))
      return E;
  }
}

/// The next question of the only session.
std::optional<ModelServer::Question> LocalServer::askOnly(bool MaySpin) {
  if (!MaySpin)
    return ask(*Open.front());
  std::optional<Question> Q;
  Wait.spin([&] {
    if (!Open.front()->channel().isReadable())
      return false;
    Q = ask(*Open.front());
    return Q || Open.empty();
  });
  return Q;
}

/// The next question of any session, taking turns.
std::optional<ModelServer::Question> LocalServer::askAnyone() {
  for (std::size_t Left = Open.size(); Left != 0; --Left) {
    if (Turn >= Open.size())
      Turn = 0;
    std::size_t Before = Open.size();
    if (std::optional<Question> Q = ask(*Open[Turn]))
      return ++Turn, Q;
    // A session that ended has made room for the next one at this index.
    if (Open.size() == Before)
      ++Turn;
  }
  return std::nullopt;
}

/// The question that \p Session has completed, if it has. Ends the session
/// when its compiler is gone or talks nonsense.
std::optional<ModelServer::Question> LocalServer::ask(ServerSession &Session) {
  Expected<ServerChannel::Progress> P = Session.channel().advance();
  if (!P) {
    end(Session, P.takeError());
    return std::nullopt;
  }
  if (*P == ServerChannel::Progress::Incomplete)
    return std::nullopt;
  ++Counts.Questions;
  Current = &Session;
  renewBareDoor(Session);
  Expected<Question> Q = Session.decode();
  if (!Q) {
    Error Why = Q.takeError();
    AwaitsReply = true;
    // The compiler may want to know; if it cannot be told, that is its end.
    (void)bool(replyError(Why.message()));
    if (Current)
      end(*Current, std::move(Why));
    return std::nullopt;
  }
  AwaitsReply = true;
  return *Q;
}

Error LocalServer::reply(Span<const TensorView> Advice) {
  if (!AwaitsReply)
    return Error(ErrorCode::InvalidArgument,
                 "there is no question to reply to");
  AwaitsReply = false;
  Error E = Current->reply(Advice, Deadline::in(Options.PeerTimeout));
  // An advice that this format cannot carry leaves the compiler waiting, and
  // only the end of the session tells it so.
  if (E)
    end(*Current, E);
  return E;
}

void LocalServer::end(ServerSession &Session, Error Why) {
  bool WasNormal = Why.code() == ErrorCode::PeerClosed &&
                   !Session.channel().isInsideMessage();
  if (!WasNormal)
    LastError = std::move(Why);
  if (Current == &Session) {
    Current = nullptr;
    AwaitsReply = false;
  }
  renewBareDoor(Session);
  std::erase_if(Open, [&](const auto &S) { return S.get() == &Session; });
  Wait = {};
}

//===----------------------------------------------------------------------===//
// Who is there
//===----------------------------------------------------------------------===//

Deadline LocalServer::wakeUp(Deadline Until) const {
  if (BareDoor)
    Until = Until.orEarlier(NextBareLook);
  if (DoorShut)
    Until = Until.orEarlier(*DoorShut);
  for (const Guest &G : Guests)
    Until = Until.orEarlier(G.Until);
  return Until;
}

Error LocalServer::watch(Deadline Until) {
  if (DoorShut && DoorShut->expired())
    DoorShut.reset();
  Watched.clear();
  Watched.push_back({DoorShut ? -1 : Door.socket(), POLLIN, 0});
  for (const Guest &G : Guests)
    Watched.push_back({G.Socket.get(), POLLIN, 0});
  std::size_t FirstSession = Watched.size();
  Watched.resize(FirstSession + Open.size() * ServerChannel::NumPollFDs);
  for (std::size_t I = 0; I < Open.size(); ++I)
    Open[I]->channel().fillPoll(
        &Watched[FirstSession + I * ServerChannel::NumPollFDs]);

  // Rung for only where it is slept: a ring costs the compiler a system call.
  int Timeout = Until.pollTimeout();
  if (Timeout != 0)
    for (const auto &Session : Open)
      if (!Session->channel().prepareToSleep())
        Timeout = 0;
  int Ready = ::poll(Watched.data(), Watched.size(), Timeout);
  if (Ready < 0 && errno != EINTR)
    return Error::fromErrno(errno, "cannot wait for compilers at " + Name);
  for (std::size_t I = 0; I < Open.size(); ++I)
    Open[I]->channel().wakeUp(
        &Watched[FirstSession + I * ServerChannel::NumPollFDs]);

  for (std::size_t I = Open.size(); Ready > 0 && I-- > 0;)
    if (Open[I]->channel().peerIsGone(
            &Watched[FirstSession + I * ServerChannel::NumPollFDs])) {
      // What it left in the pipe cannot be answered any more, but tells
      // whether it ended between two questions or inside one.
      Expected<ServerChannel::Progress> P = Open[I]->channel().advance();
      end(*Open[I],
          P ? Error(ErrorCode::PeerClosed, Open[I]->who().describe() + " ended")
            : P.takeError());
    }
  if (Watched.front().revents != 0)
    acceptGuests();
  std::erase_if(Guests, [&](Guest &G) { return !welcome(G); });
  admitBare();
  return Error::success();
}

void LocalServer::acceptGuests() {
  while (!DoorShut) {
    UniqueFD Socket = Door.accept();
    if (!Socket) {
      if (errno == EMFILE || errno == ENFILE)
        DoorShut = Deadline::in(std::chrono::milliseconds(100));
      if (errno != EINTR && errno != ECONNABORTED)
        break;
      continue;
    }
    Guests.push_back({std::move(Socket), Deadline::in(Options.PeerTimeout)});
  }
}

bool LocalServer::welcome(Guest &G) {
  Packet FromGuest;
  Expected<PacketState> State = receivePacket(G.Socket.get(), FromGuest);
  if (!State || *State == PacketState::Ended)
    return false;
  if (*State == PacketState::None)
    return !G.Until.expired();

  Expected<Hello> H = Hello::decode(FromGuest.Text);
  Error Refusal = H ? admit(G, *H) : H.takeError();
  if (Refusal) {
    Terms Answer;
    Answer.Refusal = Refusal.message();
    (void)bool(sendPacket(G.Socket.get(), Answer.encode(), {}));
    LastError = std::move(Refusal);
  }
  return false;
}

Error LocalServer::admit(Guest &G, const Hello &H) {
  if (H.Protocol != Hello::ProtocolVersion)
    return Error(ErrorCode::Unsupported,
                 "this model speaks version " +
                     std::to_string(Hello::ProtocolVersion) +
                     " of the protocol, the compiler version " +
                     std::to_string(H.Protocol) +
                     "; use the same release of ML-Compiler-Bridge on both "
                     "sides");
  Expected<std::unique_ptr<BaseSerDes>> Codec = Options.MakeSerDes(H.SerDes);
  if (!Codec)
    return Codec.takeError();
  ServerSession::Identity Who;
  Who.AdviceType = H.AdviceType;
  Who.Number = Counts.Sessions + 1;
  UniqueFD Process = posix::processOfPeer(G.Socket.get(), Who.Pid);
  Expected<std::unique_ptr<ServerChannel>> Channel =
      H.Transport == "pipe" ? makePipes(G, std::move(Process), Who.describe())
      : H.Transport == "shm"
          ? makeSharedMemory(G, std::move(Process), Who.describe())
          : Error(ErrorCode::Unsupported,
                  "this model is reached by pipe or shm, "
                  "not by \"" +
                      H.Transport + "\"");
  if (!Channel)
    return Channel.takeError();
  ++Counts.Sessions;
  Open.push_back(std::make_unique<ServerSession>(
      std::move(Who), std::move(*Channel), std::move(*Codec)));
  return Error::success();
}

Expected<std::unique_ptr<ServerChannel>>
LocalServer::makePipes(Guest &G, UniqueFD Process, const std::string &Peer) {
  Expected<posix::Pipe> ToCompiler = posix::makePipe();
  if (!ToCompiler)
    return ToCompiler.takeError();
  Expected<posix::Pipe> FromCompiler = posix::makePipe();
  if (!FromCompiler)
    return FromCompiler.takeError();
  const int TheirEnds[] = {ToCompiler->Read.get(), FromCompiler->Write.get()};
  if (Error E = sendPacket(G.Socket.get(), Terms().encode(), TheirEnds))
    return E;
  return std::make_unique<FifoChannel>(FifoEnds{std::move(FromCompiler->Read),
                                                std::move(ToCompiler->Write),
                                                std::move(Process)},
                                       Peer, Options.MaxMessage);
}

Expected<std::unique_ptr<ServerChannel>>
LocalServer::makeSharedMemory(Guest &G, UniqueFD Process,
                              const std::string &Peer) {
  Expected<SharedMemoryEnds> Ends = SharedMemoryEnds::create();
  if (!Ends)
    return Ends.takeError();
  const int Theirs[] = {Ends->Questions.descriptor(),
                        Ends->Answers.descriptor(), Ends->Doorbell.get()};
  if (Error E = sendPacket(G.Socket.get(), Terms().encode(), Theirs))
    return E;
  // Only now: a refusal is told through it.
  Ends->Socket = std::move(G.Socket);
  Ends->PeerProcess = std::move(Process);
  return std::make_unique<SharedMemoryChannel>(std::move(*Ends), Peer,
                                               Options.MaxMessage);
}

void LocalServer::admitBare() {
  if (!BareDoor || !NextBareLook.expired())
    return;
  NextBareLook = Deadline::in(BareDoorInterval);
  if (BareNewcomer != 0)
    return watchBareNewcomer();
  std::optional<FifoEnds> Ends = BareDoor->tryAccept();
  if (!Ends)
    return;
  Expected<std::unique_ptr<BaseSerDes>> Codec =
      Options.MakeSerDes(Options.BareFormat);
  if (!Codec)
    return;
  ServerSession::Identity Who;
  Who.Bare = true;
  Who.Number = BareNewcomer = ++Counts.Sessions;
  BareNewcomerUntil = Deadline::in(Options.PeerTimeout);
  Open.push_back(std::make_unique<ServerSession>(
      Who,
      std::make_unique<FifoChannel>(std::move(*Ends), Who.describe(),
                                    Options.MaxMessage),
      std::move(*Codec)));
}

/// A newcomer that thinks long before its first question has nevertheless
/// opened both names, and needs them no more.
void LocalServer::watchBareNewcomer() {
  auto Newcomer = std::ranges::find(
      Open, BareNewcomer, [](const auto &S) { return S->who().Number; });
  if (Newcomer == Open.end())
    return;
  if ((*Newcomer)->channel().hasWriter())
    renewBareDoor(**Newcomer);
  else if (BareNewcomerUntil.expired())
    end(**Newcomer, Error(ErrorCode::Timeout,
                          (*Newcomer)->who().describe() + " opened " + Name +
                              ".in, and did not open " + Name + ".out within " +
                              posix::formatDuration(Options.PeerTimeout)));
}

void LocalServer::renewBareDoor(const ServerSession &Session) {
  if (Session.who().Number != BareNewcomer)
    return;
  BareNewcomer = 0;
  if (Error E = openBareDoor())
    LastError = std::move(E);
}
