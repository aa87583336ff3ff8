//===- GRPCTransport.cpp - The compiler's end -----------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A session is a stream, or a row of unary calls, on a connection of its own.
/// The connection is tried again, ever less often, until the one deadline of
/// connect(); a request is sent once, since its bytes may have arrived.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Transport/gRPCTransport.h"
#include "MLCompilerBridge/Training/gRPCTraining.h"

#include "GRPC/GRPCClock.h"
#include "GRPC/GRPCCompletions.h"
#include "GRPC/GRPCCredentials.h"
#include "GRPC/GRPCMessage.h"
#include "GRPC/GRPCProcess.h"
#include "GRPC/GRPCProtocol.h"
#include "GRPC/GRPCStatus.h"
#include "Support/Abandon.h"
#include "Support/ForkDetector.h"
#include "Support/Posix.h"
#include "Support/PrintableText.h"
#include "Transport/Handshake.h"
#include "Transport/MessageLimit.h"

#include <fcntl.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <optional>
#include <unistd.h>
#include <vector>

using namespace MLBridge;
using namespace MLBridge::GRPC;

/// How long a peer may take to answer that it is still there. A compiler that
/// does something else looks at its connections every 5 s only (gRPC's backup
/// poller), so not any shorter.
static constexpr std::chrono::seconds KeepaliveAnswer(6);

/// How soon a connection is tried again, with jitter, and how rarely at last.
static constexpr std::chrono::milliseconds FirstReconnect(100);
static constexpr std::chrono::milliseconds MaxReconnect(1000);

/// For a connection and its handshakes, where the server is there.
static constexpr std::chrono::milliseconds TimeToLook(200);

/// How long the operations of a cancelled call may take to end. They do at once
/// where gRPC is not just writing to a connection whose peer reads nothing.
static constexpr std::chrono::milliseconds CancelTimeout(50);

namespace {

/// One call: a session's stream, or a unary request. Its operations are
/// cancelled and awaited before it goes.
class Call {
public:
  explicit Call(Completions &Waiting) : Waiting(Waiting) {}
  ~Call() { cancel(Deadline::never()); }
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  /// Whether all of its operations have ended by \p Until.
  bool cancel(Deadline Until) {
    Context.TryCancel();
    finish();
    return Waiting.drain(Until);
  }

  /// Waits for the status with which the call ends.
  grpc::Status awaitStatus(Deadline Until) {
    finish();
    return Waiting.wait(Completions::Finish, Until)
               ? Status
               : grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "");
  }

  grpc::ClientContext Context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> Stream;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> Unary;
  grpc::ByteBuffer Reply;
  grpc::Status Status;

private:
  /// Asks for the status of a stream, which may be done once.
  void finish() {
    if (Stream && !std::exchange(IsFinishing, true))
      Stream->Finish(&Status, Waiting.begin(Completions::Finish));
  }

  Completions &Waiting;
  bool IsFinishing = false;
};

/// A connection, and the call that is under way on it.
struct Session {
  Session(const std::shared_ptr<grpc::Channel> &Channel)
      : Channel(Channel), Stub(Channel) {}

  /// Before the calls that wait here.
  Completions Waiting;
  std::shared_ptr<grpc::Channel> Channel;
  grpc::GenericStub Stub;
  std::unique_ptr<Call> Open;
};

class GRPCTransport final : public Transport {
public:
  GRPCTransport(std::string Address, gRPCOptions Options, const Methods &Known)
      : Known(Known), IsLocal(Address.starts_with("unix:")),
        Address(std::move(Address)),
        Peer(printable((IsLocal ? "grpc+" : "grpc://") + this->Address)),
        Options(std::move(Options)) {}
  ~GRPCTransport() override;

  Expected<SessionTerms> connect(const SessionRequest &Request,
                                 Deadline Until) override;
  bool isConnected() const override;
  void close() override;
  Duration timeToLook() const override { return TimeToLook; }

  Expected<Span<std::byte>> acquire(std::size_t Size) override;
  Error commit(std::size_t Size, Deadline Until) override;
  Expected<Span<const std::byte>> receive(Deadline Until) override;
  std::string describe() const override { return Peer; }

private:
  bool isUnary() const { return Options.Style == gRPCOptions::Call::Unary; }
  Error notConnected() const {
    return {ErrorCode::PeerClosed, Peer + " is not connected"};
  }

  Error openChannel();
  Error checkSocket() const;
  Error awaitChannel(Deadline Until);
  grpc::Status tryStream(Deadline Until);
  std::unique_ptr<Call> makeCall();
  Expected<Span<const std::byte>> take();
  Expected<Span<const std::byte>> receiveUnary(Deadline Until);

  const Methods &Known;
  const bool IsLocal;
  std::string Address;
  /// For messages, and made once: it is handed on with every request.
  std::string Peer;
  gRPCOptions Options;

  /// What the calls of this session say of it.
  std::string SerDesName, AdviceType, SessionName;
  PeerRole Role = PeerRole::Model;
  std::unique_ptr<Session> Live;
  /// Those whose calls were cancelled and have not ended.
  std::vector<std::unique_ptr<Session>> Ending;
  /// Tells a forked child that the session is its parent's.
  ForkDetector Fork;
  OutgoingMessage Out;
  IncomingMessage In;
};

} // namespace

//===----------------------------------------------------------------------===//
// The connection
//===----------------------------------------------------------------------===//

/// A name that no other session has, wherever it is from.
static std::string newSessionName() {
  std::uint64_t Number[2] = {};
  if (::getentropy(Number, sizeof(Number)) != 0)
    Number[0] = static_cast<std::uint64_t>(::getpid());
  return std::to_string(Number[0]) + "-" + std::to_string(Number[1]);
}

/// Anybody may put a socket into /tmp, and whoever answers decides what is
/// compiled.
Error GRPCTransport::checkSocket() const {
  const std::string Path = Address.substr(Address.find(':') + 1);
  posix::UniqueFD File(::open(Path.c_str(), O_PATH | O_CLOEXEC));
  if (!File || posix::isTrustedFile(File.get()))
    return Error::success();
  return {ErrorCode::System, "another user has made " + printable(Path) +
                                 ", whose model is not asked; choose another "
                                 "name"};
}

Error GRPCTransport::openChannel() {
  auto Credentials = makeChannelCredentials(Options.Credentials);
  if (!Credentials)
    return Credentials.takeError();
  grpc::ChannelArguments Arguments;
  setCommonArguments(Arguments, Options.MaxMessage);
  // Sessions share nothing, so that a large message of one holds up no other.
  Arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A request is never sent twice, and its bytes are not kept for that.
  Arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // The proxies of a machine's web browsers have no business in between.
  Arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  Arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   millisOf(FirstReconnect));
  Arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, millisOf(MaxReconnect));
  Arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, millisOf(Options.Keepalive));
  Arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, millisOf(KeepaliveAnswer));
  Arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  Live = std::make_unique<Session>(grpc::CreateCustomChannel(
      IsLocal ? Address : "dns:" + Address, *Credentials, Arguments));
  Fork.claim();
  return Error::success();
}

std::unique_ptr<Call> GRPCTransport::makeCall() {
  auto Begun = std::make_unique<Call>(Live->Waiting);
  grpc::ClientContext &Context = Begun->Context;
  Context.AddMetadata(Metadata::Protocol, std::to_string(ProtocolVersion));
  Context.AddMetadata(Metadata::SerDes, SerDesName);
  Context.AddMetadata(Metadata::AdviceType, AdviceType);
  Context.AddMetadata(Metadata::Session, SessionName);
  Context.AddMetadata(Metadata::Pid, std::to_string(::getpid()));
  return Begun;
}

/// Starts the session's stream, if there is a connection; else why there is
/// none.
grpc::Status GRPCTransport::tryStream(Deadline Until) {
  Completions &Waiting = Live->Waiting;
  std::unique_ptr<Call> Begun = makeCall();
  Begun->Stream =
      Live->Stub.PrepareCall(&Begun->Context, Known.Stream, Waiting.queue());
  Begun->Stream->StartCall(Waiting.begin(Completions::Start));
  if (!Waiting.wait(Completions::Start, Until))
    return {grpc::StatusCode::DEADLINE_EXCEEDED, ""};
  if (!Waiting.wentWell(Completions::Start))
    return Begun->awaitStatus(Until);
  Live->Open = std::move(Begun);
  return grpc::Status::OK;
}

/// Waits until there is a connection, on which HTTP/2 is spoken.
Error GRPCTransport::awaitChannel(Deadline Until) {
  // TLS 1.3 tells a client only by the end of the connection that it is not
  // welcome. A server that is being stopped ends one as well.
  constexpr int MaxTimesShutOut = 3;
  int TimesShutOut = 0;
  std::chrono::milliseconds Pause = FirstReconnect;
  std::string Found =
      "no connection was made, or something that is no gRPC server accepted it";
  for (;;) {
    const grpc_connectivity_state State =
        Live->Channel->GetState(/*try_to_connect=*/true);
    if (State == GRPC_CHANNEL_READY)
      return Error::success();
    if (State == GRPC_CHANNEL_TRANSIENT_FAILURE) {
      // Only a call is told why.
      const std::string Why =
          printable(tryStream(Until).error_message(), /*MaxBytes=*/1000);
      Live->Open.reset();
      if (Error E = certificateError(Why, Peer))
        return E;
      if (!Options.Credentials.empty() &&
          Why.find("Socket closed") != std::string::npos &&
          ++TimesShutOut == MaxTimesShutOut)
        return {ErrorCode::Unsupported,
                Peer + " ends each connection once it has seen our "
                       "certificate: it wants one that its authorities have "
                       "signed (cert=, key=)"};
      if (!Why.empty())
        Found = Why;
    }
    // From a failure on, the state stays until there is a connection.
    Deadline Look = Until;
    if (State == GRPC_CHANNEL_TRANSIENT_FAILURE) {
      Look = Until.orEarlier(Deadline::in(Pause));
      Pause = std::min(2 * Pause, MaxReconnect);
    }
    Completions &Waiting = Live->Waiting;
    do {
      Live->Channel->NotifyOnStateChange(State, timeOf(Look.nextLook()),
                                         Waiting.queue(),
                                         Waiting.begin(Completions::Watch));
      Waiting.wait(Completions::Watch, Deadline::never());
    } while (!Waiting.wentWell(Completions::Watch) && !Look.expired());
    if (!Waiting.wentWell(Completions::Watch) && Until.expired())
      return Backoff::noListenerAt(Peer, Found, Options.ConnectTimeout, Role);
  }
}

Expected<SessionTerms> GRPCTransport::connect(const SessionRequest &Request,
                                              Deadline Until) {
  close();
  SerDesName = Request.SerDes;
  Role = Request.Peer;
  AdviceType = Request.AdviceType;
  SessionName = newSessionName();
  if (Error E = checkProcess())
    return E;
  if (IsLocal)
    if (Error E = checkSocket())
      return E;
  if (Error E = openChannel())
    return E;
  for (;;) {
    if (Error E = awaitChannel(Until)) {
      close();
      return E;
    }
    if (isUnary())
      return SessionTerms();
    if (grpc::Status S = tryStream(Until); S.ok())
      break;
    // The connection was lost again, before anything was asked.
    if (Until.expired()) {
      close();
      return Backoff::noListenerAt(Peer, "it does not keep its connections",
                                   Options.ConnectTimeout, Role);
    }
  }
  Live->Open->Stream->Read(&Live->Open->Reply,
                           Live->Waiting.begin(Completions::Read));
  return SessionTerms();
}

/// Whether the next request may be asked: a server that has gone since the
/// last one has not seen it, so it is asked of the one that came after.
bool GRPCTransport::isConnected() const {
  if (!Live || Fork.isForked())
    return false;
  Completions &Waiting = Live->Waiting;
  Waiting.poll();
  if (isUnary())
    return Live->Channel->GetState(/*try_to_connect=*/false) ==
           GRPC_CHANNEL_READY;
  return Waiting.isPending(Completions::Read) ||
         Waiting.wentWell(Completions::Read);
}

void GRPCTransport::close() {
  if (Fork.isForked()) {
    abandon(std::move(Live));
    abandon(std::move(Ending));
    return;
  }
  std::erase_if(Ending, [](const auto &Old) {
    return Old->Waiting.drain(Deadline::in(Duration::zero()));
  });
  if (Live && Live->Open && !Live->Open->cancel(Deadline::in(CancelTimeout)))
    Ending.push_back(std::move(Live));
  Live.reset();
}

GRPCTransport::~GRPCTransport() {
  close();
  // gRPC may still write to what they own. Who destroys a runner is not to wait
  // for a peer that has stopped, so this memory stays with the process.
  for (std::unique_ptr<Session> &Old : Ending)
    if (!Old->Waiting.drain(Deadline::in(CancelTimeout)))
      abandon(std::move(Old));
}

//===----------------------------------------------------------------------===//
// Requests and answers
//===----------------------------------------------------------------------===//

Expected<Span<std::byte>> GRPCTransport::acquire(std::size_t Size) {
  if (!Live)
    return notConnected();
  return Out.acquire(Size);
}

Error GRPCTransport::commit(std::size_t Size, Deadline Until) {
  if (!Live)
    return notConnected();
  if (Error E = checkMessageSize(Size, Options.MaxMessage, Peer))
    return E;
  Completions &Waiting = Live->Waiting;
  std::unique_ptr<Call> &Open = Live->Open;
  if (isUnary()) {
    Open = makeCall();
    Open->Context.set_deadline(timeOf(Until));
    Open->Unary = Live->Stub.PrepareUnaryCall(&Open->Context, Known.Unary,
                                              Out.lend(Size), Waiting.queue());
    Open->Unary->StartCall();
    Open->Unary->Finish(&Open->Reply, &Open->Status,
                        Waiting.begin(Completions::Finish));
    return Error::success();
  }
  if (!Waiting.isPending(Completions::Read) &&
      Waiting.wentWell(Completions::Read))
    return {ErrorCode::Malformed,
            Peer + " has sent an answer that nobody asked for"};
  // The last one is done as a rule: its answer is there.
  if (!Waiting.wait(Completions::Write, Until))
    return {ErrorCode::Timeout, Peer + " did not take the last message"};
  Open->Stream->Write(Out.lend(Size), Waiting.begin(Completions::Write));
  return Error::success();
}

/// The answer that is in Open.
Expected<Span<const std::byte>> GRPCTransport::take() {
  std::unique_ptr<Call> &Open = Live->Open;
  if (Open->Reply.Length() > Options.MaxMessage)
    return Error(ErrorCode::Malformed,
                 Peer + " sent a message of " +
                     std::to_string(Open->Reply.Length()) +
                     " bytes; the limit is " +
                     std::to_string(Options.MaxMessage) + " (max-message)");
  if (Error E = In.take(Open->Reply))
    return E;
  return In.bytes();
}

Expected<Span<const std::byte>> GRPCTransport::receiveUnary(Deadline Until) {
  Live->Waiting.waitForPeer(Completions::Finish, Until);
  if (grpc::Status S = Live->Open->awaitStatus(Until); !S.ok())
    return errorOf(S, Peer);
  return take();
}

Expected<Span<const std::byte>> GRPCTransport::receive(Deadline Until) {
  if (!Live || !Live->Open)
    return notConnected();
  if (isUnary())
    return receiveUnary(Until);
  Completions &Waiting = Live->Waiting;
  std::unique_ptr<Call> &Open = Live->Open;
  if (!Waiting.waitForPeer(Completions::Read, Until))
    return Error(ErrorCode::Timeout,
                 Peer + " did not answer before the deadline");
  if (!Waiting.wentWell(Completions::Read))
    return errorOf(Open->awaitStatus(Until), Peer);
  Expected<Span<const std::byte>> Reply = take();
  if (Reply)
    // Under way all the time, so that isConnected() sees the session's end.
    Open->Stream->Read(&Open->Reply, Waiting.begin(Completions::Read));
  return Reply;
}

std::unique_ptr<Transport> MLBridge::createGRPCTransport(std::string Address,
                                                         gRPCOptions Options) {
  return std::make_unique<GRPCTransport>(std::move(Address), std::move(Options),
                                         Inference);
}

std::unique_ptr<Transport>
MLBridge::createGRPCTrainerTransport(std::string Address, gRPCOptions Options) {
  return std::make_unique<GRPCTransport>(std::move(Address), std::move(Options),
                                         Training);
}
