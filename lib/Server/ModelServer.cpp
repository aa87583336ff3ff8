//===- ModelServer.cpp - The model's side of a session --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Transport/ModelServer.h"

#include "Server/LatencyHistogram.h"
#include "Server/ServerSession.h"
#include "Server/SessionTable.h"
#include "Support/PrintableText.h"

#include "MLCompilerBridge/Transport/AdaptiveWait.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>

using namespace MLBridge;

Listener::~Listener() = default;
ModelServer::~ModelServer() = default;

//===----------------------------------------------------------------------===//
// What all servers have
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<ModelServer>>
ModelServer::listen(std::string Name, ModelServerOptions Options) {
  std::string BareFormat = Options.Bare ? Options.BareFormat : std::string();
  Expected<std::unique_ptr<Listener>> Opened = openLocalListener(
      std::move(Name), std::move(BareFormat), std::move(Options));
  if (!Opened)
    return Opened.takeError();
  std::vector<std::unique_ptr<Listener>> Listeners;
  Listeners.push_back(std::move(*Opened));
  return create(std::move(Listeners));
}

Expected<ModelServer::Request> ModelServer::next(Deadline Until) {
  Expected<Span<const Request>> Batch =
      nextBatch(BatchLimits(), Until.remaining());
  if (!Batch)
    return Batch.takeError();
  return Batch->front();
}

static TensorView namedText(std::string_view Name, std::string_view Text) {
  TensorView View;
  View.Name = Name;
  View.Type = ElementType::String;
  View.Data = Text.data();
  View.NumBytes = Text.size();
  return View;
}

/// The beginning of \p Text, in whole characters of UTF-8. A compiler shows no
/// more, and a longer one might exceed max-message.
static std::string_view beginning(std::string_view Text) {
  constexpr std::size_t MaxBytes = 4096;
  if (Text.size() <= MaxBytes)
    return Text;
  std::size_t End = MaxBytes;
  while (End > 0 && (static_cast<unsigned char>(Text[End]) & 0xC0) == 0x80)
    --End;
  return Text.substr(0, End);
}

Error ModelServer::replyError(std::string_view Message, std::size_t Index) {
  TensorView View = namedText(ReplyNames::Error, beginning(Message));
  return reply(Index, Span<const TensorView>(&View, 1));
}

Error ModelServer::replyDeferred(std::string_view Why, std::size_t Index) {
  TensorView View = namedText(ReplyNames::Deferred, beginning(Why));
  return reply(Index, Span<const TensorView>(&View, 1));
}

//===----------------------------------------------------------------------===//
// The server
//===----------------------------------------------------------------------===//

namespace {

class Server final : public ModelServer {
public:
  explicit Server(std::vector<std::unique_ptr<Listener>> Listeners);

  Expected<Span<const Request>> nextBatch(const BatchLimits &Limits,
                                          Duration Within) override;
  using ModelServer::reply;
  Error reply(std::size_t Index, Span<const TensorView> Advice) override;
  bool isOpen(std::uint64_t Session) const override;
  Statistics statistics() const override;
  void measureLatencies() override { MeasuresLatencies = true; }
  std::vector<Duration> latencies(Span<const double> Quantiles) const override;
  const Error &lastSessionError() const override { return LastError; }
  const Error &lastRefusal() const override { return LastRefusal; }
  const std::string &name() const override { return Name; }

private:
  using TimePoint = Deadline::Clock::time_point;
  /// Who seems to have a request.
  struct ReadySession {
    ServerSession *Session;
    TimePoint Seen;
  };
  /// A request of Batch.
  struct PendingReply {
    /// Null when it has been answered, or cannot be any more.
    ServerSession *Session;
    TimePoint Arrived;
  };

  void answerForgotten();
  /// Whether one session alone has to be looked at, which is the fast path.
  bool hasOnlyOne() const {
    return Open.size() == 1 && Open.front()->isListening();
  }
  Error spin();
  Error sleep(const BatchLimits &Limits, Deadline Until);
  void fill(const BatchLimits &Limits);
  void ask(ServerSession &Session, TimePoint Seen);
  /// The time, for those who measure.
  TimePoint now() const {
    return MeasuresLatencies ? Deadline::Clock::now() : TimePoint();
  }
  void endUnlessTold(ServerSession &Session, Error Why);
  void end(ServerSession &Session, Error Why);

  /// Waits for anything to happen, at most until \p Until.
  Error watch(Deadline Until);
  void collectPolls();
  void attend(ServerSession &Session, const pollfd *FDs);
  Deadline wakeUp(Deadline Until) const;

  struct PolledListener {
    std::unique_ptr<Listener> Impl;
    /// What it has added to Watched.
    std::size_t NumPolls = 0;
  };
  struct BrokenSession {
    ServerSession *Session;
    Error Why;
  };

  std::vector<PolledListener> Listeners;
  std::string Name;
  std::vector<std::unique_ptr<ServerSession>> Open;
  /// Those of the batch that have ended.
  std::vector<std::unique_ptr<ServerSession>> Ended;
  /// Of the open ones, those that seem to have a request: whoever is first
  /// seen is first served.
  std::vector<ReadySession> Ready;
  std::vector<Request> Batch;
  std::vector<PendingReply> Unanswered;
  /// Requests of the only session since the listeners were last looked at.
  unsigned InARow = 0;
  /// Whether the last call ended in a time-out: then this one goes on waiting
  /// for the same request, and spinning again would be no news.
  bool Resumed = false;
  bool MeasuresLatencies = false;
  /// Not a session's own: the session may end while it is waited for.
  AdaptiveWait Wait;
  /// What poll(2) watches, and what of it each session has asked for.
  std::vector<pollfd> Watched, OfSessions;
  std::vector<BrokenSession> Broken;
  Statistics Counts;
  LatencyHistogram Latencies;
  Error LastError, LastRefusal;
};

/// Nobody at a listener may be kept waiting for more requests than this.
constexpr unsigned MaxInARow = 64;

} // namespace

std::unique_ptr<ModelServer>
ModelServer::create(std::vector<std::unique_ptr<Listener>> Listeners) {
  return std::make_unique<Server>(std::move(Listeners));
}

Server::Server(std::vector<std::unique_ptr<Listener>> TheDoors) {
  for (std::unique_ptr<Listener> &D : TheDoors) {
    Name += (Name.empty() ? "" : ", ") + D->name();
    Listeners.push_back({std::move(D)});
  }
}

bool Server::isOpen(std::uint64_t Session) const {
  return std::ranges::any_of(
      Open, [&](const auto &S) { return S->who().Number == Session; });
}

ModelServer::Statistics Server::statistics() const {
  Statistics S = Counts;
  S.Open = Open.size();
  return S;
}

std::vector<Duration> Server::latencies(Span<const double> Quantiles) const {
  std::vector<Duration> Result;
  for (double Quantile : Quantiles)
    Result.push_back(Latencies.quantile(Quantile));
  return Result;
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

Expected<Span<const ModelServer::Request>>
Server::nextBatch(const BatchLimits &Limits, Duration Within) {
  answerForgotten();
  Batch.clear();
  Unanswered.clear();
  Ended.clear();
  bool MaySpin = !std::exchange(Resumed, false);
  // With one compiler there is nobody else to look at: its channel alone is
  // read, but for once in a while. Else everybody is looked at each time:
  // listeners and those who take their answers slowly are not to wait for a
  // queue.
  if (!hasOnlyOne() || ++InARow > MaxInARow) {
    InARow = 0;
    if (Error E = watch(Deadline::in(Duration::zero())))
      return E;
  }
  fill(Limits);
  if (Batch.empty() && MaySpin && !Open.empty()) {
    if (Error E = spin())
      return E;
    fill(Limits);
  }
  // Only who has to sleep looks at the clock.
  if (Batch.empty())
    if (Error E = sleep(Limits, Deadline::in(Within)))
      return E;
  // There may be more compilers than requests.
  if (Limits.MaxDelay > Duration::zero()) {
    const Deadline Full = Deadline::in(Limits.MaxDelay);
    while (Batch.size() < std::min(Limits.MaxSize, Open.size()) &&
           !Full.expired()) {
      if (Error E = watch(wakeUp(Full)))
        return E;
      fill(Limits);
    }
  }
  ++Counts.Batches;
  return Span<const Request>(Batch);
}

/// Waits until the batch has a request.
Error Server::sleep(const BatchLimits &Limits, Deadline Until) {
  while (true) {
    if (Error E = watch(wakeUp(Until)))
      return E;
    fill(Limits);
    if (!Batch.empty())
      return Error::success();
    if (Until.expired()) {
      Resumed = true;
      return Error(ErrorCode::Timeout, "no compiler asked the model at " +
                                           Name + " before the deadline");
    }
  }
}

void Server::answerForgotten() {
  for (std::size_t I = 0; I < Unanswered.size(); ++I)
    if (Unanswered[I].Session)
      if (Error E = replyError("the model gave no answer to this request", I))
        LastError = std::move(E);
}

/// Looks for a request for a while, where that has lately been worth it.
Error Server::spin() {
  Error Failure;
  Wait.spin([&] {
    if (hasOnlyOne()) {
      if (Open.front()->channel().isReadable())
        return true;
      relax();
      return false;
    }
    Failure = watch(Deadline::in(Duration::zero()));
    return Failure || !Ready.empty() || Open.empty();
  });
  return Failure;
}

/// Adds to the batch the requests that are there.
void Server::fill(const BatchLimits &Limits) {
  if (Ready.empty() && hasOnlyOne()) {
    ask(*Open.front(), now());
    return;
  }
  while (!Ready.empty() &&
         Batch.size() < std::max<std::size_t>(Limits.MaxSize, 1)) {
    ReadySession First = Ready.front();
    Ready.erase(Ready.begin());
    ask(*First.Session, First.Seen);
  }
}

/// Adds the request that \p Session has completed, if it has. Ends the session
/// when its compiler is gone or talks nonsense.
void Server::ask(ServerSession &Session, TimePoint Seen) {
  Expected<ServerChannel::Progress> P = Session.channel().advance();
  if (!P)
    return end(Session, P.takeError());
  if (*P == ServerChannel::Progress::Incomplete)
    return;
  ++Counts.Requests;
  Expected<Request> Q = Session.decode();
  if (!Q) {
    Error Why = Q.takeError();
    TensorView View = namedText(ReplyNames::Error, Why.message());
    // The compiler may want to know; if it cannot be told, that is its end.
    (void)bool(Session.reply(Span<const TensorView>(&View, 1)));
    return end(Session, std::move(Why));
  }
  Batch.push_back(std::move(*Q));
  Unanswered.push_back({&Session, Seen});
}

Error Server::reply(std::size_t Index, Span<const TensorView> Advice) {
  ServerSession *Session =
      Index < Unanswered.size()
          ? std::exchange(Unanswered[Index].Session, nullptr)
          : nullptr;
  if (!Session)
    return Error(ErrorCode::InvalidArgument, "there is no request to reply to");
  Error E = Session->reply(Advice);
  if (MeasuresLatencies)
    Latencies.record(Deadline::Clock::now() - Unanswered[Index].Arrived);
  if (E)
    endUnlessTold(*Session, E);
  return E;
}

/// Answers in place of an advice that was not sent, so that the compiler does
/// not wait for it. Where that cannot be sent either, only the end of the
/// session tells it.
void Server::endUnlessTold(ServerSession &Session, Error Why) {
  const bool IsLost = Why.code() == ErrorCode::PeerClosed ||
                      Why.code() == ErrorCode::Timeout ||
                      Session.channel().isInsideAnswer();
  const std::string Text =
      "the model's answer could not be sent: " + printable(Why.message(), 1024);
  const TensorView View = namedText(ReplyNames::Error, Text);
  if (IsLost || Session.reply(Span<const TensorView>(&View, 1)))
    end(Session, std::move(Why));
}

void Server::end(ServerSession &Session, Error Why) {
  bool WasNormal = Why.code() == ErrorCode::PeerClosed &&
                   !Session.channel().isInsideMessage();
  if (!WasNormal)
    LastError = std::move(Why);
  std::erase_if(Ready,
                [&](const ReadySession &A) { return A.Session == &Session; });
  auto Found =
      std::ranges::find(Open, &Session, &std::unique_ptr<ServerSession>::get);
  // A request of this batch may still be looked at, until the next one.
  if (std::ranges::find(Batch, Session.who().Number, &Request::Session) !=
      Batch.end()) {
    Session.close();
    Ended.push_back(std::move(*Found));
  }
  Open.erase(Found);
  Wait = {};
}

//===----------------------------------------------------------------------===//
// Who is there
//===----------------------------------------------------------------------===//

Deadline Server::wakeUp(Deadline Until) const {
  for (const PolledListener &L : Listeners)
    Until = Until.orEarlier(L.Impl->wakeUp());
  for (const auto &Session : Open)
    Until = Until.orEarlier(Session->channel().unsentUntil());
  return Until;
}

/// Makes Watched of what the sessions and listeners want to be watched.
void Server::collectPolls() {
  constexpr std::size_t FDsOfSession = ServerChannel::NumPollFDs;
  OfSessions.clear();
  // One whose request is with the model has to be there for its answer.
  for (const auto &Session : Open) {
    OfSessions.resize(OfSessions.size() + FDsOfSession, pollfd{-1, 0, 0});
    if (!Session->awaitsReply())
      Session->channel().fillPoll(
          &OfSessions[OfSessions.size() - FDsOfSession]);
  }
  // poll(2) fails when it gets more entries than the process may have
  // descriptors, those that it would ignore included.
  Watched.clear();
  for (const pollfd &FD : OfSessions)
    if (FD.fd >= 0)
      Watched.push_back(FD);
  for (PolledListener &L : Listeners) {
    const std::size_t Before = Watched.size();
    L.Impl->addPolls(Watched);
    L.NumPolls = Watched.size() - Before;
  }
}

Error Server::watch(Deadline Until) {
  collectPolls();

  // Rung for only where it is slept: a ring costs the compiler a system call.
  int Timeout = Until.pollTimeout();
  const bool MaySleep = Timeout != 0;
  if (MaySleep)
    for (const auto &Session : Open)
      if (Session->isListening() && !Session->channel().prepareToSleep())
        Timeout = 0;
  int Result = ::poll(Watched.data(), Watched.size(), Timeout);
  if (Result < 0 && errno != EINTR)
    return Error::fromErrno(errno, "cannot wait for compilers at " + Name);
  if (Result < 0)
    for (pollfd &FD : Watched)
      FD.revents = 0;

  const pollfd *FDs = Watched.data();
  for (pollfd &FD : OfSessions)
    if (FD.fd >= 0)
      FD.revents = FDs++->revents;
  Broken.clear();
  const pollfd *OfSession = OfSessions.data();
  for (const auto &Session : Open) {
    if (MaySleep && Session->isListening())
      Session->channel().wakeUp(OfSession);
    attend(*Session, OfSession);
    OfSession += ServerChannel::NumPollFDs;
  }
  for (BrokenSession &L : Broken)
    end(*L.Session, std::move(L.Why));

  SessionTable NewSessions(Open, Counts, LastError, LastRefusal);
  for (PolledListener &L : Listeners) {
    L.Impl->admit({FDs, L.NumPolls}, NewSessions);
    FDs += L.NumPolls;
  }
  return Error::success();
}

/// Looks at what poll(2) has told of \p Session.
void Server::attend(ServerSession &Session, const pollfd *FDs) {
  ServerChannel &Channel = Session.channel();
  if (Session.awaitsReply())
    return;
  if (Channel.peerIsGone(FDs)) {
    // What it left in the pipe cannot be answered any more, but tells whether
    // it ended between two requests or inside one.
    Expected<ServerChannel::Progress> P = Channel.advance();
    Broken.push_back({&Session, P ? Error(ErrorCode::PeerClosed,
                                          Session.who().describe() + " ended")
                                  : P.takeError()});
  } else if (Channel.isSending()) {
    if (Error E = Channel.flush())
      Broken.push_back({&Session, std::move(E)});
  } else if (Channel.isReadable(FDs) &&
             std::ranges::find(Ready, &Session, &ReadySession::Session) ==
                 Ready.end()) {
    Ready.push_back({&Session, now()});
  }
}
