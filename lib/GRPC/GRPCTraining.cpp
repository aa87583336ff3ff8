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

using namespace MLBridge;
using namespace MLBridge::GRPC;

namespace {

class CompilerTransport final : public Transport {
public:
  CompilerTransport(std::unique_ptr<AcceptQueue> Callers,
                    std::size_t MaxMessage)
      : Callers(std::move(Callers)), MaxMessage(MaxMessage) {
    const std::string &Address = this->Callers->address();
    Where = (Address.starts_with("unix:") ? "grpc+" : "grpc://") + Address;
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
  std::string describe() const override { return Where; }

private:
  Error notConnected() const {
    return {ErrorCode::PeerClosed, Where + " has no trainer"};
  }
  Error sleep(Deadline Until);

  std::string Where;
  /// The trainer is the parent's.
  ForkDetector Fork;
  std::unique_ptr<AcceptQueue> Callers;
  std::size_t MaxMessage;
  bool IsUnary = false;
  /// Whether a message has come: only then can a unary call be answered.
  bool IsAsked = false;
  AdaptiveWait Wait;
  /// Before the accept queue, which waits for its calls.
  std::unique_ptr<GRPCServerChannel> Channel;
};

} // namespace

Expected<SessionTerms> CompilerTransport::connect(const SessionRequest &Request,
                                                  Deadline Until) {
  if (Fork.isForked())
    return Error(ErrorCode::Unsupported,
                 Where + " is where the parent of this process listens; gRPC "
                         "does not work in a forked child");
  close();
  for (;;) {
    for (const PendingSession &Who : Callers->takePending()) {
      // A trainer whose patience has run out calls again.
      if (Who.Box->isClosed())
        continue;
      const std::string Theirs =
          Who.First->metadata(Metadata::SerDes, "protobuf");
      if (Channel) {
        Who.refuse("another trainer has this compiler");
      } else if (Theirs != Request.SerDes) {
        Who.refuse("this compiler speaks " + std::string(Request.SerDes) +
                   ", the trainer " + Theirs + " (serdes=)");
      } else {
        IsUnary = !Who.Stream;
        IsAsked = false;
        Channel = std::make_unique<GRPCServerChannel>(
            Who.Box, Who.Stream, "the trainer at " + Where, MaxMessage);
      }
    }
    if (Channel)
      return SessionTerms();
    pollfd FD{Callers->doorbell(), POLLIN, 0};
    if (::poll(&FD, 1, Until.pollTimeout()) <= 0 && Until.expired())
      return Error(ErrorCode::Timeout,
                   "no trainer came to " + Where +
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
  // A unary trainer is not greeted.
  if (IsUnary && !IsAsked)
    return Error::success();
  IsAsked = false;
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
      IsAsked = true;
      return Channel->message();
    }
    if (Error E = sleep(Until))
      return E;
  }
}

/// Sleeps until there is something to look at.
Error CompilerTransport::sleep(Deadline Until) {
  pollfd FDs[ServerChannel::NumPollFDs + 1];
  Channel->fillPoll(FDs);
  FDs[ServerChannel::NumPollFDs] = {Callers->doorbell(), POLLIN, 0};
  const Deadline Wake = Until.orEarlier(Channel->unsentUntil());
  const int Timeout = Channel->prepareToSleep() ? Wake.pollTimeout() : 0;
  if (::poll(FDs, std::size(FDs), Timeout) < 0)
    for (pollfd &FD : FDs)
      FD.revents = 0;
  Channel->wakeUp(FDs);
  for (const PendingSession &Who : Callers->takePending())
    Who.refuse("another trainer has this compiler");
  if (Channel->isSending())
    if (Error E = Channel->flush())
      return E;
  if (Until.expired() && !Channel->isReadable(FDs))
    return {ErrorCode::Timeout,
            "the trainer at " + Where + " did not act before the deadline"};
  return Error::success();
}

/// Writes \p Text to \p Path, which has either none or all of it.
static Error announce(const std::string &Path, const std::string &Text) {
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
  Expected<ServerSpec> Spec =
      ServerSpec::parse(Text, TransportOptions().MaxMessage, /*MaxSessions=*/1,
                        /*IsTraining=*/true);
  if (!Spec)
    return Spec.takeError();
  Expected<std::unique_ptr<AcceptQueue>> Callers = AcceptQueue::open(
      Spec->Address, Training,
      {Spec->MaxMessage, std::chrono::seconds(10), Spec->Credentials});
  if (!Callers)
    return Callers.takeError();
  auto Made = std::make_unique<CompilerTransport>(std::move(*Callers),
                                                  Spec->MaxMessage);
  if (!Spec->Announce.empty())
    if (Error E = announce(Spec->Announce, Made->describe()))
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
  Expected<std::unique_ptr<BaseSerDes>> Codec = Formats.create(
      Spec->option("serdes", defaultSerDes(Formats)), SerDes::Side::Compiler);
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
