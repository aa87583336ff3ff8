//===- ModelServer.cpp - Serves compilers' requests -----------------------===//
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
// Functions of all servers
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

/// Returns the longest prefix of \p Text of at most 4096 bytes that does not
/// split a UTF-8 character. A longer text might exceed the maximum message
/// size, and compilers do not print more than 4096 bytes.
static std::string_view truncated(std::string_view Text) {
  constexpr std::size_t MaxBytes = 4096;
  if (Text.size() <= MaxBytes)
    return Text;
  std::size_t End = MaxBytes;
  while (End > 0 && (static_cast<unsigned char>(Text[End]) & 0xC0) == 0x80)
    --End;
  return Text.substr(0, End);
}

Error ModelServer::replyError(std::string_view Message, std::size_t Index) {
  TensorView View = namedText(ReplyNames::Error, truncated(Message));
  return reply(Index, Span<const TensorView>(&View, 1));
}

Error ModelServer::replyDeferred(std::string_view Why, std::size_t Index) {
  TensorView View = namedText(ReplyNames::Deferred, truncated(Why));
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
  /// A session for which poll(2) has reported data. The data may not be a
  /// complete request yet.
  struct ReadySession {
    ServerSession *Session;
    TimePoint ReadySince;
  };
  /// The state of the reply to a request of Batch.
  struct PendingReply {
    /// The session. Null after reply() has been called for the request.
    ServerSession *Session;
    TimePoint ReceivedAt;
  };

  void replyToUnanswered();
  /// Returns whether a single session is open and waits for a request. In this
  /// case, the server can read the session's channel without poll(2).
  bool hasSingleSession() const {
    return Open.size() == 1 && Open.front()->isListening();
  }
  Error spin();
  Error sleep(const BatchLimits &Limits, Deadline Until);
  void fillBatch(const BatchLimits &Limits);
  void receive(ServerSession &Session, TimePoint ReadySince);
  /// Returns the time if latencies are measured. Otherwise, does not read the
  /// clock.
  TimePoint now() const {
    return MeasuresLatencies ? Deadline::Clock::now() : TimePoint();
  }
  void replyWithReason(ServerSession &Session, Error Why);
  void end(ServerSession &Session, Error Why);

  /// Waits for events, at most until \p Until, and handles the events.
  Error pollEvents(Deadline Until);
  void collectPolls();
  void handleEvents(ServerSession &Session, const pollfd *FDs);
  Deadline wakeUp(Deadline Until) const;

  struct PolledListener {
    std::unique_ptr<Listener> Impl;
    /// The number of the listener's entries in Watched.
    std::size_t NumPolls = 0;
  };
  struct BrokenSession {
    ServerSession *Session;
    Error Why;
  };

  std::vector<PolledListener> Listeners;
  std::string Name;
  std::vector<std::unique_ptr<ServerSession>> Open;
  /// Sessions that have ended. They still own the memory of requests of Batch.
  std::vector<std::unique_ptr<ServerSession>> Ended;
  /// The open sessions with data, in the order of poll(2)'s reports.
  std::vector<ReadySession> Ready;
  std::vector<Request> Batch;
  std::vector<PendingReply> Unanswered;
  /// The number of calls of nextBatch() since the listeners were last checked.
  unsigned NumSincePoll = 0;
  /// True if the last nextBatch() timed out. The next nextBatch() then
  /// continues the same wait, so it does not spin again.
  bool Resumed = false;
  bool MeasuresLatencies = false;
  /// The history of waits. It is not a member of a session, because a session
  /// may end during a wait.
  AdaptiveWait Wait;
  /// Watched has all entries for poll(2). SessionFDs has NumPollFDs entries for
  /// each session.
  std::vector<pollfd> Watched, SessionFDs;
  std::vector<BrokenSession> Broken;
  Statistics Counts;
  LatencyHistogram Latencies;
  Error LastError, LastRefusal;
};

/// The maximum number of requests from a single session before the listeners
/// are checked.
constexpr unsigned MaxSincePoll = 64;

} // namespace

std::unique_ptr<ModelServer>
ModelServer::create(std::vector<std::unique_ptr<Listener>> Listeners) {
  return std::make_unique<Server>(std::move(Listeners));
}

Server::Server(std::vector<std::unique_ptr<Listener>> NewListeners) {
  for (std::unique_ptr<Listener> &L : NewListeners) {
    Name += (Name.empty() ? "" : ", ") + L->name();
    Listeners.push_back({std::move(L)});
  }
}

bool Server::isOpen(std::uint64_t Session) const {
  return std::ranges::any_of(
      Open, [&](const auto &S) { return S->peer().Number == Session; });
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
  replyToUnanswered();
  Batch.clear();
  Unanswered.clear();
  Ended.clear();
  bool MaySpin = !std::exchange(Resumed, false);
  // If there is a single session, call poll(2) only after every MaxSincePoll
  // requests, to check the listeners. Otherwise, always call poll(2), so that
  // requests in Ready do not delay new connections or unsent replies.
  if (!hasSingleSession() || ++NumSincePoll > MaxSincePoll) {
    NumSincePoll = 0;
    if (Error E = pollEvents(Deadline::in(Duration::zero())))
      return E;
  }
  fillBatch(Limits);
  if (Batch.empty() && MaySpin && !Open.empty()) {
    if (Error E = spin())
      return E;
    fillBatch(Limits);
  }
  // Read the clock only before sleeping.
  if (Batch.empty())
    if (Error E = sleep(Limits, Deadline::in(Within)))
      return E;
  // Wait for requests from other compilers.
  if (Limits.MaxDelay > Duration::zero()) {
    const Deadline Full = Deadline::in(Limits.MaxDelay);
    while (Batch.size() < std::min(Limits.MaxSize, Open.size()) &&
           !Full.expired()) {
      if (Error E = pollEvents(wakeUp(Full)))
        return E;
      fillBatch(Limits);
    }
  }
  ++Counts.Batches;
  return Span<const Request>(Batch);
}

/// Waits until the batch has a request.
Error Server::sleep(const BatchLimits &Limits, Deadline Until) {
  while (true) {
    if (Error E = pollEvents(wakeUp(Until)))
      return E;
    fillBatch(Limits);
    if (!Batch.empty())
      return Error::success();
    if (Until.expired()) {
      Resumed = true;
      return Error(ErrorCode::Timeout, "no compiler asked the model at " +
                                           Name + " before the deadline");
    }
  }
}

void Server::replyToUnanswered() {
  for (std::size_t I = 0; I < Unanswered.size(); ++I)
    if (Unanswered[I].Session)
      if (Error E = replyError("the model did not reply to this request", I))
        LastError = std::move(E);
}

/// Spins until a request arrives. Does not spin if AdaptiveWait declines.
Error Server::spin() {
  Error Failure;
  Wait.spin([&] {
    if (hasSingleSession()) {
      if (Open.front()->channel().isReadable())
        return true;
      relax();
      return false;
    }
    Failure = pollEvents(Deadline::in(Duration::zero()));
    return Failure || !Ready.empty() || Open.empty();
  });
  return Failure;
}

/// Adds available requests to the batch.
void Server::fillBatch(const BatchLimits &Limits) {
  if (Ready.empty() && hasSingleSession()) {
    receive(*Open.front(), now());
    return;
  }
  while (!Ready.empty() &&
         Batch.size() < std::max<std::size_t>(Limits.MaxSize, 1)) {
    ReadySession First = Ready.front();
    Ready.erase(Ready.begin());
    receive(*First.Session, First.ReadySince);
  }
}

/// Adds the next request of \p Session to the batch if the request is complete.
/// Ends the session if its compiler has disconnected or sent a malformed
/// message.
void Server::receive(ServerSession &Session, TimePoint ReadySince) {
  Expected<ServerChannel::Progress> P = Session.channel().advance();
  if (!P)
    return end(Session, P.takeError());
  if (*P == ServerChannel::Progress::Incomplete)
    return;
  ++Counts.Requests;
  Expected<Request> Decoded = Session.decode();
  if (!Decoded) {
    Error Why = Decoded.takeError();
    TensorView View = namedText(ReplyNames::Error, truncated(Why.message()));
    // Ignore whether this reply can be sent, because the session ends anyway.
    (void)bool(Session.reply(Span<const TensorView>(&View, 1)));
    return end(Session, std::move(Why));
  }
  Batch.push_back(std::move(*Decoded));
  Unanswered.push_back({&Session, ReadySince});
}

Error Server::reply(std::size_t Index, Span<const TensorView> Advice) {
  ServerSession *Session =
      Index < Unanswered.size()
          ? std::exchange(Unanswered[Index].Session, nullptr)
          : nullptr;
  if (!Session)
    return Error(ErrorCode::InvalidArgument,
                 "no request awaits a reply at this index");
  Error E = Session->reply(Advice);
  if (MeasuresLatencies)
    Latencies.record(Deadline::Clock::now() - Unanswered[Index].ReceivedAt);
  if (E)
    replyWithReason(*Session, E);
  return E;
}

/// Sends \p Why as the reply, because the advice could not be sent and the
/// compiler waits for a reply. Ends the session if this reply fails too.
void Server::replyWithReason(ServerSession &Session, Error Why) {
  const bool IsLost = Why.code() == ErrorCode::PeerClosed ||
                      Why.code() == ErrorCode::Timeout ||
                      Session.channel().isInsideReply();
  const std::string Text =
      "the model's reply could not be sent: " + printable(Why.message(), 1024);
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
                [&](const ReadySession &R) { return R.Session == &Session; });
  auto Found =
      std::ranges::find(Open, &Session, &std::unique_ptr<ServerSession>::get);
  // Keep a session that has a request in Batch, because the request's views
  // must stay valid until the next batch.
  if (std::ranges::find(Batch, Session.peer().Number, &Request::Session) !=
      Batch.end()) {
    Session.close();
    Ended.push_back(std::move(*Found));
  }
  Open.erase(Found);
  Wait = {};
}

//===----------------------------------------------------------------------===//
// Polling
//===----------------------------------------------------------------------===//

Deadline Server::wakeUp(Deadline Until) const {
  for (const PolledListener &L : Listeners)
    Until = Until.orEarlier(L.Impl->wakeUp());
  for (const auto &Session : Open)
    Until = Until.orEarlier(Session->channel().unsentUntil());
  return Until;
}

/// Fills Watched with the entries of all sessions and listeners.
void Server::collectPolls() {
  constexpr std::size_t FDsPerSession = ServerChannel::NumPollFDs;
  SessionFDs.clear();
  // Ignore events of sessions that await a reply, because such an event could
  // end a session before its reply.
  for (const auto &Session : Open) {
    SessionFDs.resize(SessionFDs.size() + FDsPerSession, pollfd{-1, 0, 0});
    if (!Session->awaitsReply())
      Session->channel().fillPoll(
          &SessionFDs[SessionFDs.size() - FDsPerSession]);
  }
  // Copy only the entries that have a descriptor, because poll(2) fails if the
  // number of entries exceeds the limit of open descriptors.
  Watched.clear();
  for (const pollfd &FD : SessionFDs)
    if (FD.fd >= 0)
      Watched.push_back(FD);
  for (PolledListener &L : Listeners) {
    const std::size_t Before = Watched.size();
    L.Impl->addPolls(Watched);
    L.NumPolls = Watched.size() - Before;
  }
}

Error Server::pollEvents(Deadline Until) {
  collectPolls();

  // Call prepareToSleep() only if this thread may sleep. After this call, a
  // compiler makes a system call to wake this thread.
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
  for (pollfd &FD : SessionFDs)
    if (FD.fd >= 0)
      FD.revents = FDs++->revents;
  Broken.clear();
  const pollfd *FDsOfSession = SessionFDs.data();
  for (const auto &Session : Open) {
    if (MaySleep && Session->isListening())
      Session->channel().wakeUp(FDsOfSession);
    handleEvents(*Session, FDsOfSession);
    FDsOfSession += ServerChannel::NumPollFDs;
  }
  for (BrokenSession &B : Broken)
    end(*B.Session, std::move(B.Why));

  SessionTable Sessions(Open, Counts, LastError, LastRefusal);
  for (PolledListener &L : Listeners) {
    L.Impl->accept({FDs, L.NumPolls}, Sessions);
    FDs += L.NumPolls;
  }
  return Error::success();
}

/// Handles the events that poll(2) reported for \p Session.
void Server::handleEvents(ServerSession &Session, const pollfd *FDs) {
  ServerChannel &Channel = Session.channel();
  if (Session.awaitsReply())
    return;
  if (Channel.peerIsGone(FDs)) {
    // Read the remaining data, although no reply is possible. The data shows
    // whether the compiler ended between two requests or inside a request.
    Expected<ServerChannel::Progress> P = Channel.advance();
    Broken.push_back({&Session, P ? Error(ErrorCode::PeerClosed,
                                          Session.peer().describe() + " ended")
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
