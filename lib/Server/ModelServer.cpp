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
/// split a UTF-8 character. Compilers show no more, and a longer text might
/// exceed max-message.
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
  /// A session that probably has a request.
  struct ReadySession {
    ServerSession *Session;
    TimePoint ReadySince;
  };
  /// The reply to a request of Batch.
  struct PendingReply {
    /// Null once the reply has been sent or the session has ended.
    ServerSession *Session;
    TimePoint ReceivedAt;
  };

  void replyToUnanswered();
  /// Whether only one session needs to be checked, which is the fast path.
  bool hasSingleSession() const {
    return Open.size() == 1 && Open.front()->isListening();
  }
  Error spin();
  Error sleep(const BatchLimits &Limits, Deadline Until);
  void fillBatch(const BatchLimits &Limits);
  void receive(ServerSession &Session, TimePoint ReadySince);
  /// The time if latencies are measured; otherwise does not read the clock.
  TimePoint now() const {
    return MeasuresLatencies ? Deadline::Clock::now() : TimePoint();
  }
  void replyWithReason(ServerSession &Session, Error Why);
  void end(ServerSession &Session, Error Why);

  /// Waits for events until \p Until at most, and handles them.
  Error pollEvents(Deadline Until);
  void collectPolls();
  void handleEvents(ServerSession &Session, const pollfd *FDs);
  Deadline wakeUp(Deadline Until) const;

  struct PolledListener {
    std::unique_ptr<Listener> Impl;
    /// The number of its entries in Watched.
    std::size_t NumPolls = 0;
  };
  struct BrokenSession {
    ServerSession *Session;
    Error Why;
  };

  std::vector<PolledListener> Listeners;
  std::string Name;
  std::vector<std::unique_ptr<ServerSession>> Open;
  /// Sessions of the batch that have ended.
  std::vector<std::unique_ptr<ServerSession>> Ended;
  /// The open sessions that probably have a request, in order of arrival.
  std::vector<ReadySession> Ready;
  std::vector<Request> Batch;
  std::vector<PendingReply> Unanswered;
  /// Requests of the single session since the listeners were last checked.
  unsigned NumSincePoll = 0;
  /// Whether the last nextBatch() timed out. The next one then continues the
  /// same wait, so it does not spin again.
  bool Resumed = false;
  bool MeasuresLatencies = false;
  /// Not a member of a session, which may end during the wait.
  AdaptiveWait Wait;
  /// The entries for poll(2), and NumPollFDs entries per session.
  std::vector<pollfd> Watched, SessionFDs;
  std::vector<BrokenSession> Broken;
  Statistics Counts;
  LatencyHistogram Latencies;
  Error LastError, LastRefusal;
};

/// The most requests of a single session before the listeners are checked.
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
  // With a single session, read only its channel, and poll the listeners now
  // and then. Otherwise poll every time, so that queued requests delay neither
  // listeners nor sessions with unsent replies.
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
  // Wait for requests of other compilers.
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

/// Spins for a request, if spinning has lately been successful.
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

/// Adds the next request of \p Session to the batch if it is complete. Ends the
/// session if its compiler is gone or sent a malformed message.
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
    TensorView View = namedText(ReplyNames::Error, Why.message());
    // Try to tell the compiler; the session ends in any case.
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

/// Replies with \p Why in place of advice that could not be sent, so that the
/// compiler does not wait for it. Ends the session if that fails, too.
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
  // The views of a request of this batch must stay valid until the next one.
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
  // Ignore sessions that await a reply: a session must not end before its
  // reply.
  for (const auto &Session : Open) {
    SessionFDs.resize(SessionFDs.size() + FDsPerSession, pollfd{-1, 0, 0});
    if (!Session->awaitsReply())
      Session->channel().fillPoll(
          &SessionFDs[SessionFDs.size() - FDsPerSession]);
  }
  // poll(2) fails if it gets more entries than the process may have
  // descriptors, including ignored entries.
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

  // Enable doorbells only before sleeping: a ring costs the compiler a system
  // call.
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
    // Data left in the channel cannot be answered, but shows whether the
    // compiler ended between two requests or inside one.
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
