//===- GRPCTransport.cpp - gRPC, the compiler's end -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The compiler's end of gRPC. A session is a stream or a series of unary
/// calls, and each session has its own connection. connect() retries with
/// exponential backoff until its deadline. A request is never sent twice,
/// because the server may already have received it.
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

/// The time limit for a peer to answer a ping. It must exceed 5 s, because
/// gRPC's backup poller checks the connections only every 5 s while a compiler
/// is busy.
static constexpr std::chrono::seconds KeepaliveTimeout(6);

/// The first and the longest interval between attempts to connect. gRPC varies
/// each interval at random.
static constexpr std::chrono::milliseconds FirstReconnect(100);
static constexpr std::chrono::milliseconds MaxReconnect(1000);

/// The time limit for connecting to a listening server, including the
/// handshakes.
static constexpr std::chrono::milliseconds TimeToLook(200);

/// How long the operations of a cancelled call may take to end. They end
/// immediately, unless gRPC is writing to a connection whose peer does not
/// read.
static constexpr std::chrono::milliseconds CancelTimeout(50);

namespace {

/// One call: the stream of a session, or a unary request. The destructor
/// cancels the call's operations and waits until they have ended.
class Call {
public:
  explicit Call(Completions &Waiting) : Waiting(Waiting) {}
  ~Call() { cancel(Deadline::never()); }
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  /// Cancels the call. Returns false if the call's operations have not ended by
  /// \p Until.
  bool cancel(Deadline Until) {
    Context.TryCancel();
    finish();
    return Waiting.drain(Until);
  }

  /// Waits for the status of the call. Returns DEADLINE_EXCEEDED if \p Until
  /// passes first.
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
  /// A second reply, which a unary method never sends.
  grpc::ByteBuffer Extra;
  grpc::Status Status;

private:
  /// Requests the status of a stream. gRPC allows only one such request per
  /// stream.
  void finish() {
    if (Stream && !std::exchange(IsFinishing, true))
      Stream->Finish(&Status, Waiting.begin(Completions::Finish));
  }

  Completions &Waiting;
  bool IsFinishing = false;
};

/// A connection and its current call.
struct Session {
  Session(const std::shared_ptr<grpc::Channel> &Channel)
      : Channel(Channel), Stub(Channel) {}

  /// Declared first, so that it outlives the calls that use it.
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
  bool isUnary() const {
    return Options.Style == gRPCOptions::Call::Unary || hasOwnMethod();
  }
  bool hasOwnMethod() const { return !Options.Method.empty(); }
  Error notConnected() const {
    return {ErrorCode::PeerClosed, Peer + " is not connected"};
  }

  Error openChannel();
  Error checkSocket() const;
  Error awaitChannel(Deadline Until);
  grpc::Status tryStream(Deadline Until);
  std::unique_ptr<Call> makeCall();
  Expected<Span<const std::byte>> take();
  void callOwnMethod(std::size_t Size);
  Expected<Span<const std::byte>> receiveUnary(Deadline Until);
  Expected<Span<const std::byte>> receiveFromOwnMethod(Deadline Until);

  const Methods &Known;
  const bool IsLocal;
  std::string Address;
  /// The spec, for error messages. It is built once because every request uses
  /// it.
  std::string Peer;
  gRPCOptions Options;

  /// The metadata that all calls of the session have.
  std::string SerDesName, AdviceType, SessionName;
  PeerRole Role = PeerRole::Model;
  std::unique_ptr<Session> Live;
  /// The closed sessions whose cancelled calls have not ended yet.
  std::vector<std::unique_ptr<Session>> Ending;
  /// Detects a forked child. The session belongs to the parent.
  ForkDetector Fork;
  OutgoingMessage Out;
  IncomingMessage In;
};

} // namespace

//===----------------------------------------------------------------------===//
// The connection
//===----------------------------------------------------------------------===//

/// Returns a globally unique name for a session.
static std::string newSessionName() {
  std::uint64_t Number[2] = {};
  if (::getentropy(Number, sizeof(Number)) != 0)
    Number[0] = static_cast<std::uint64_t>(::getpid());
  return std::to_string(Number[0]) + "-" + std::to_string(Number[1]);
}

/// Checks that the socket belongs to a trusted user. Any user can create a
/// socket in /tmp, and the peer influences the compiler's output.
Error GRPCTransport::checkSocket() const {
  const std::string Path = Address.substr(Address.find(':') + 1);
  posix::UniqueFD File(::open(Path.c_str(), O_PATH | O_CLOEXEC));
  if (!File || posix::isTrustedFile(File.get()))
    return Error::success();
  return {ErrorCode::System, printable(Path) + " belongs to another user; "
                                               "choose another name"};
}

Error GRPCTransport::openChannel() {
  auto Credentials = makeChannelCredentials(Options.Credentials);
  if (!Credentials)
    return Credentials.takeError();
  grpc::ChannelArguments Arguments;
  setCommonArguments(Arguments, Options.MaxMessage);
  // Give each session its own connection, so that a large message does not
  // delay other sessions.
  Arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Never send a request twice. Without retries, gRPC need not keep the
  // request's bytes.
  Arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Do not use the HTTP proxies that environment variables name.
  Arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  Arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   millisOf(FirstReconnect));
  Arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, millisOf(MaxReconnect));
  Arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, millisOf(Options.Keepalive));
  Arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, millisOf(KeepaliveTimeout));
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

/// Starts the session's stream. Returns the reason if the stream cannot start,
/// for example because there is no connection.
grpc::Status GRPCTransport::tryStream(Deadline Until) {
  Completions &Waiting = Live->Waiting;
  std::unique_ptr<Call> Begun = makeCall();
  Begun->Stream =
      Live->Stub.PrepareCall(&Begun->Context, Known.Stream, Waiting.queue());
  Begun->Stream->StartCall(Waiting.begin(Completions::Start));
  if (!Waiting.wait(Completions::Start, Until))
    return {grpc::StatusCode::DEADLINE_EXCEEDED, ""};
  if (!Waiting.hasSucceeded(Completions::Start))
    return Begun->awaitStatus(Until);
  Live->Open = std::move(Begun);
  return grpc::Status::OK;
}

/// Waits until there is an HTTP/2 connection to the server.
Error GRPCTransport::awaitChannel(Deadline Until) {
  // The number of closed connections after which the server is assumed to
  // reject the client's certificate. A TLS 1.3 server rejects a certificate by
  // closing the connection. One closure is not enough, because a server that
  // shuts down also closes its connections.
  constexpr int MaxClosures = 3;
  int Closures = 0;
  std::chrono::milliseconds Pause = FirstReconnect;
  std::string Found =
      "the connection failed, or a server without gRPC accepted it";
  for (;;) {
    const grpc_connectivity_state State =
        Live->Channel->GetState(/*try_to_connect=*/true);
    if (State == GRPC_CHANNEL_READY)
      return Error::success();
    if (State == GRPC_CHANNEL_TRANSIENT_FAILURE) {
      // Start a stream, because only a call reports why the connection failed.
      const std::string Why =
          printable(tryStream(Until).error_message(), /*MaxBytes=*/1000);
      Live->Open.reset();
      if (Error E = certificateError(Why, Peer))
        return E;
      if (!Options.Credentials.empty() &&
          Why.find("Socket closed") != std::string::npos &&
          ++Closures == MaxClosures)
        return {ErrorCode::Unsupported,
                Peer + " closes each connection after receiving our "
                       "certificate: it requires one signed by its "
                       "authorities (cert=, key=)"};
      if (!Why.empty())
        Found = Why;
    }
    // Check again after a pause, even if the state does not change. It stays
    // TRANSIENT_FAILURE while attempts keep failing.
    Deadline NextCheck = Until;
    if (State == GRPC_CHANNEL_TRANSIENT_FAILURE) {
      NextCheck = Until.orEarlier(Deadline::in(Pause));
      Pause = std::min(2 * Pause, MaxReconnect);
    }
    Completions &Waiting = Live->Waiting;
    do {
      Live->Channel->NotifyOnStateChange(State, timeOf(NextCheck.nextLook()),
                                         Waiting.queue(),
                                         Waiting.begin(Completions::Watch));
      Waiting.wait(Completions::Watch, Deadline::never());
    } while (!Waiting.hasSucceeded(Completions::Watch) && !NextCheck.expired());
    if (!Waiting.hasSucceeded(Completions::Watch) && Until.expired())
      return noListenerError(Peer, Found, Options.ConnectTimeout, Role);
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
    // The connection was lost before the stream began. Try again unless Until
    // has passed.
    if (Until.expired()) {
      close();
      return noListenerError(Peer, "the server closes its connections",
                             Options.ConnectTimeout, Role);
    }
  }
  Live->Open->Stream->Read(&Live->Open->Reply,
                           Live->Waiting.begin(Completions::Read));
  return SessionTerms();
}

/// Returns true if the connection is usable for the next request. If it is not,
/// the caller connects again. The server may have ended since the last request,
/// and another server may have replaced it.
bool GRPCTransport::isConnected() const {
  if (!Live || Fork.isForked())
    return false;
  Completions &Waiting = Live->Waiting;
  Waiting.poll();
  if (isUnary())
    return Live->Channel->GetState(/*try_to_connect=*/false) ==
           GRPC_CHANNEL_READY;
  return Waiting.isPending(Completions::Read) ||
         Waiting.hasSucceeded(Completions::Read);
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
  // gRPC may still use the memory of these sessions. If they do not end in
  // time, leak their memory, because waiting for a stopped peer could take
  // forever.
  for (std::unique_ptr<Session> &Old : Ending)
    if (!Old->Waiting.drain(Deadline::in(CancelTimeout)))
      abandon(std::move(Old));
}

//===----------------------------------------------------------------------===//
// Requests and replies
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
    if (hasOwnMethod()) {
      callOwnMethod(Size);
      return Error::success();
    }
    Open->Unary = Live->Stub.PrepareUnaryCall(
        &Open->Context, Known.Unary, Out.asByteBuffer(Size), Waiting.queue());
    Open->Unary->StartCall();
    Open->Unary->Finish(&Open->Reply, &Open->Status,
                        Waiting.begin(Completions::Finish));
    return Error::success();
  }
  if (!Waiting.isPending(Completions::Read) &&
      Waiting.hasSucceeded(Completions::Read))
    return {ErrorCode::Malformed, Peer + " sent a message without a request"};
  // Wait for the last write. It has usually completed, because the reply to it
  // has arrived.
  if (!Waiting.wait(Completions::Write, Until))
    return {ErrorCode::Timeout,
            Peer + " did not read the last message before the deadline"};
  Open->Stream->Write(Out.asByteBuffer(Size),
                      Waiting.begin(Completions::Write));
  return Error::success();
}

/// Starts a call of the user's method. The operations of a stream are used,
/// because a unary call does not notice a second reply. If the method sends
/// several replies, a unary call therefore waits until its deadline.
void GRPCTransport::callOwnMethod(std::size_t Size) {
  Completions &Waiting = Live->Waiting;
  Call &Open = *Live->Open;
  // Send the metadata, the request and the end of the stream together, like a
  // unary call. StartCall() then sends nothing and needs no tag.
  Open.Context.set_initial_metadata_corked(true);
  Open.Stream =
      Live->Stub.PrepareCall(&Open.Context, Options.Method, Waiting.queue());
  Open.Stream->StartCall(nullptr);
  Open.Stream->WriteLast(Out.asByteBuffer(Size), grpc::WriteOptions(),
                         Waiting.begin(Completions::Write));
  Open.Stream->Read(&Open.Reply, Waiting.begin(Completions::Read));
}

/// Reads the reply of the open call.
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

Expected<Span<const std::byte>>
GRPCTransport::receiveFromOwnMethod(Deadline Until) {
  Completions &Waiting = Live->Waiting;
  Call &Open = *Live->Open;
  const bool HasReply = Waiting.waitForPeer(Completions::Read, Until) &&
                        Waiting.hasSucceeded(Completions::Read);
  if (HasReply) {
    // Read the end of the call.
    Open.Stream->Read(&Open.Extra, Waiting.begin(Completions::Read));
    if (Waiting.wait(Completions::Read, Until) &&
        Waiting.hasSucceeded(Completions::Read))
      return Error(ErrorCode::Unsupported,
                   Peer + ": the method " + printable(Options.Method) +
                       " sent several replies to one request; expected a "
                       "unary method, found a stream");
  }
  const grpc::Status S = Open.awaitStatus(Until);
  if (!S.ok() || !HasReply)
    return errorOfOwnMethod(S, Peer);
  return take();
}

Expected<Span<const std::byte>> GRPCTransport::receive(Deadline Until) {
  if (!Live || !Live->Open)
    return notConnected();
  if (hasOwnMethod())
    return receiveFromOwnMethod(Until);
  if (isUnary())
    return receiveUnary(Until);
  Completions &Waiting = Live->Waiting;
  std::unique_ptr<Call> &Open = Live->Open;
  if (!Waiting.waitForPeer(Completions::Read, Until))
    return Error(ErrorCode::Timeout,
                 Peer + " did not answer before the deadline");
  if (!Waiting.hasSucceeded(Completions::Read))
    return errorOf(Open->awaitStatus(Until), Peer);
  Expected<Span<const std::byte>> Reply = take();
  if (Reply)
    // Always keep a read pending, because isConnected() uses it to notice the
    // session's end.
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
