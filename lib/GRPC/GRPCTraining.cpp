//===- GRPCTraining.cpp - Training through gRPC ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Training/gRPCTraining.h"

#include "GRPC/GRPCAcceptQueue.h"
#include "GRPC/GRPCProtocol.h"
#include "GRPC/GRPCServerChannel.h"
#include "GRPC/GRPCSpec.h"
#include "MLCompilerBridge/Transport/AdaptiveWait.h"
#include "Support/ForkDetector.h"
#include "Support/PrintableText.h"

#include <cerrno>
#include <cstdio>
#include <sys/stat.h>

using namespace MLBridge;
using namespace MLBridge::GRPC;

static constexpr char AlreadyTaken[] = "this compiler already has a trainer";

namespace {

class CompilerTransport final : public Transport {
public:
  CompilerTransport(std::unique_ptr<AcceptQueue> Trainers,
                    std::size_t MaxMessage, bool HasOwnMethod)
      : Trainers(std::move(Trainers)), MaxMessage(MaxMessage),
        HasOwnMethod(HasOwnMethod) {
    const std::string &Address = this->Trainers->address();
    Spec = (Address.starts_with("unix:") ? "grpc+" : "grpc://") + Address;
  }

  Expected<SessionTerms> connect(const SessionRequest &Request,
                                 Deadline Until) override;
  bool isConnected() const override {
    return Channel != nullptr && !Fork.isForked();
  }
  void close() override { Channel.reset(); }

  Expected<Span<std::byte>> acquire(std::size_t Size) override;
  Error commit(std::size_t Size, Deadline Until) override;
  Expected<Span<const std::byte>> receive(Deadline Until) override;
  std::string describe() const override { return Spec; }

private:
  Error notConnected() const {
    return {ErrorCode::PeerClosed, Spec + " has no trainer"};
  }
  Error sleep(Deadline Until);

  std::string Spec;
  /// Detects a forked child. The session with the trainer belongs to the
  /// parent.
  ForkDetector Fork;
  std::unique_ptr<AcceptQueue> Trainers;
  std::size_t MaxMessage;
  bool HasOwnMethod;
  bool IsUnary = false;
  /// True if a request waits for its reply. commit() checks this, because a
  /// unary call can be answered only once.
  bool HasRequest = false;
  AdaptiveWait Wait;
  /// Declared after the accept queue, so that it is destroyed first. The accept
  /// queue's destructor waits until all calls have ended.
  std::unique_ptr<GRPCServerChannel> Channel;
};

} // namespace

Expected<SessionTerms> CompilerTransport::connect(const SessionRequest &Request,
                                                  Deadline Until) {
  if (Fork.isForked())
    return Error(ErrorCode::Unsupported,
                 "the parent of this process listens at " + Spec +
                     "; gRPC does not work in a forked child");
  close();
  for (;;) {
    for (const PendingSession &Session : Trainers->takePending()) {
      // Skip a session that the trainer has abandoned. The trainer will begin
      // another one.
      if (Session.Requests->isClosed())
        continue;
      const std::string Theirs = Session.First->metadata(
          Metadata::SerDes, HasOwnMethod ? Request.SerDes : "protobuf");
      if (Channel) {
        Session.refuse(AlreadyTaken);
      } else if (Theirs != Request.SerDes) {
        Session.refuse(
            "this compiler uses serdes=" + std::string(Request.SerDes) +
            ", the trainer serdes=" + Theirs);
      } else {
        IsUnary = !Session.Stream;
        HasRequest = false;
        Channel = std::make_unique<GRPCServerChannel>(
            Session.Requests, Session.Stream, "the trainer at " + Spec,
            MaxMessage, HasOwnMethod);
      }
    }
    if (Channel)
      return SessionTerms();
    pollfd FD{Trainers->doorbell(), POLLIN, 0};
    if (::poll(&FD, 1, Until.pollTimeout()) <= 0 && Until.expired())
      return Error(ErrorCode::Timeout,
                   "no trainer connected to " + Spec +
                       " before the deadline; start one, or wait longer "
                       "(connect=)");
  }
}

Expected<Span<std::byte>> CompilerTransport::acquire(std::size_t Size) {
  if (!Channel)
    return notConnected();
  return Channel->acquire(Size);
}

Error CompilerTransport::commit(std::size_t Size, Deadline Until) {
  if (!Channel)
    return notConnected();
  // A unary call carries only the reply to its own request. If the trainer has
  // made no call, the message cannot be sent.
  if (IsUnary && !HasRequest)
    return Error::success();
  HasRequest = false;
  return Channel->commit(Size, Until.remaining());
}

Expected<Span<const std::byte>> CompilerTransport::receive(Deadline Until) {
  if (!Channel)
    return notConnected();
  for (;;) {
    Wait.spin([&] { return Channel->isReadable() || (relax(), false); });
    Expected<ServerChannel::Progress> P = Channel->advance();
    if (!P)
      return P.takeError();
    if (*P == ServerChannel::Progress::Complete) {
      HasRequest = true;
      return Channel->message();
    }
    if (Error E = sleep(Until))
      return E;
  }
}

/// Sleeps until an event occurs. Returns a Timeout error if \p Until has
/// passed.
Error CompilerTransport::sleep(Deadline Until) {
  pollfd FDs[ServerChannel::NumPollFDs + 1];
  Channel->fillPoll(FDs);
  FDs[ServerChannel::NumPollFDs] = {Trainers->doorbell(), POLLIN, 0};
  const Deadline Wake = Until.orEarlier(Channel->unsentUntil());
  const int Timeout = Channel->prepareToSleep() ? Wake.pollTimeout() : 0;
  if (::poll(FDs, std::size(FDs), Timeout) < 0)
    for (pollfd &FD : FDs)
      FD.revents = 0;
  Channel->wakeUp(FDs);
  for (const PendingSession &Session : Trainers->takePending())
    Session.refuse(AlreadyTaken);
  if (Channel->isSending())
    if (Error E = Channel->flush())
      return E;
  if (Until.expired() && !Channel->isReadable(FDs))
    return {ErrorCode::Timeout,
            "the trainer at " + Spec + " did not act before the deadline"};
  return Error::success();
}

/// Writes \p Text to \p Path atomically.
static Error writeAnnouncement(const std::string &Path,
                               const std::string &Text) {
  // rename() would replace even a device.
  struct stat Status = {};
  if (::stat(Path.c_str(), &Status) == 0 && !S_ISREG(Status.st_mode))
    return {ErrorCode::InvalidArgument, "cannot write " + printable(Path) +
                                            " (announce=): expected a regular "
                                            "file"};
  const std::string Fresh = Path + ".new";
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> File(
      std::fopen(Fresh.c_str(), "we"), std::fclose);
  if (!File || std::fputs(Text.c_str(), File.get()) < 0 ||
      std::fclose(File.release()) != 0 ||
      std::rename(Fresh.c_str(), Path.c_str()) != 0)
    return Error::fromErrno(errno,
                            "cannot write " + printable(Path) + " (announce=)");
  return Error::success();
}

Expected<std::unique_ptr<Transport>>
MLBridge::listenForTrainer(std::string_view Text) {
  // No formats are needed, because the caller chooses the SerDes.
  Expected<ServerSpec> Spec =
      ServerSpec::parse(Text, TransportOptions().MaxMessage, /*MaxSessions=*/1,
                        SerDesFactory(), /*IsTraining=*/true);
  if (!Spec)
    return Spec.takeError();
  Expected<std::unique_ptr<AcceptQueue>> Trainers = AcceptQueue::open(
      Spec->Address, Training, Spec->Method,
      {Spec->MaxMessage, std::chrono::seconds(10), Spec->Credentials});
  if (!Trainers)
    return Trainers.takeError();
  auto Made = std::make_unique<CompilerTransport>(
      std::move(*Trainers), Spec->MaxMessage, !Spec->Method.empty());
  if (!Spec->Announce.empty())
    if (Error E = writeAnnouncement(Spec->Announce, Made->describe()))
      return E;
  return Made;
}

//===----------------------------------------------------------------------===//
// Environments
//===----------------------------------------------------------------------===//

static Error serveAt(Environment &Env, std::string_view Text,
                     const SerDesFactory &Formats) {
  Expected<ModelSpec> Spec = ModelSpec::parse(Text);
  if (!Spec)
    return Spec.takeError();
  EnvironmentOptions Options;
  Expected<Duration> Connect =
      Spec->duration("connect", Options.ConnectTimeout);
  if (!Connect)
    return Connect.takeError();
  Options.ConnectTimeout = *Connect;
  Expected<Duration> Command =
      Spec->duration("timeout", Options.CommandTimeout);
  if (!Command)
    return Command.takeError();
  Options.CommandTimeout = *Command;
  Expected<std::string> SerDesName = serDesOf(*Spec, Formats);
  if (!SerDesName)
    return SerDesName.takeError();
  Expected<std::unique_ptr<BaseSerDes>> Codec =
      Formats.create(*SerDesName, SerDes::Side::Compiler);
  if (!Codec)
    return Codec.takeError();
  Expected<std::unique_ptr<Transport>> Channel = listenForTrainer(Text);
  if (!Channel)
    return Channel.takeError();
  return serveEnvironment(Env, **Channel, **Codec, Options);
}

void MLBridge::addGRPC(EnvironmentServer &Server) {
  Server.add({"grpc", serveAt});
  Server.add({"grpc+unix", serveAt});
}
