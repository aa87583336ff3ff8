//===- GRPCListener.cpp - Where compilers arrive by gRPC ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Transport/gRPCListener.h"

#include "GRPC/GRPCAcceptQueue.h"
#include "GRPC/GRPCProtocol.h"
#include "GRPC/GRPCServerChannel.h"
#include "GRPC/GRPCSpec.h"
#include "Server/SessionTable.h"

#include <charconv>
#include <poll.h>
#include <utility>

using namespace MLBridge;
using namespace MLBridge::GRPC;

namespace {

class GRPCListener final : public Listener {
public:
  GRPCListener(std::string Name, ListenerOptions Options,
               std::unique_ptr<AcceptQueue> Callers)
      : Name(std::move(Name)), Options(std::move(Options)),
        Callers(std::move(Callers)) {}

  const std::string &name() const override { return Name; }
  void addPolls(std::vector<pollfd> &Watched) const override {
    Watched.push_back({Callers->doorbell(), POLLIN, 0});
  }
  void admit(Span<const pollfd> Polled, SessionTable &Into) override;

private:
  Error take(const PendingSession &Who, SessionTable &Into);

  std::string Name;
  ListenerOptions Options;
  std::unique_ptr<AcceptQueue> Callers;
};

} // namespace

Expected<std::unique_ptr<Listener>>
MLBridge::openGRPCListener(std::string_view Text, ListenerOptions Options) {
  Expected<ServerSpec> Spec =
      ServerSpec::parse(Text, Options.MaxMessage, Options.MaxSessions);
  if (!Spec)
    return Spec.takeError();
  Options.MaxMessage = Spec->MaxMessage;
  Options.MaxSessions = Spec->MaxSessions;
  Expected<std::unique_ptr<AcceptQueue>> Callers = AcceptQueue::open(
      Spec->Address, Inference,
      {Options.MaxMessage, Options.PeerTimeout, Spec->Credentials});
  if (!Callers)
    return Callers.takeError();
  return std::make_unique<GRPCListener>(
      nameOf((*Callers)->address()), std::move(Options), std::move(*Callers));
}

void GRPCListener::admit(Span<const pollfd> Polled, SessionTable &Into) {
  if (Polled.front().revents == 0)
    return;
  for (PendingSession &Who : Callers->takePending())
    if (Error E = take(Who, Into)) {
      // The session that is ended for it has gone when it is taken again.
      if (Into.checkRoom(Options.MaxSessions) && Callers->endIdle()) {
        Callers->announce(std::move(Who));
        continue;
      }
      Who.refuse(E.message());
      Into.refuse(std::move(E));
    }
}

Error GRPCListener::take(const PendingSession &Who, SessionTable &Into) {
  const ServerCall &Call = *Who.First;
  if (Error E = Into.checkRoom(Options.MaxSessions))
    return E;
  Expected<std::unique_ptr<BaseSerDes>> Codec = Options.Formats.create(
      Call.metadata(Metadata::SerDes, defaultSerDes(Options.Formats)),
      SerDes::Side::Model);
  if (!Codec)
    return Codec.takeError();
  ServerSession::Identity Identity;
  Identity.Number = Into.nextNumber();
  Identity.AdviceType = Call.metadata(Metadata::AdviceType, {});
  const std::string Pid = Call.metadata(Metadata::Pid, {});
  std::from_chars(Pid.data(), Pid.data() + Pid.size(), Identity.Pid);
  auto Channel = std::make_unique<GRPCServerChannel>(
      Who.Box, Who.Stream, Identity.describe(), Options.MaxMessage);
  Into.admit(
      std::make_unique<ServerSession>(std::move(Identity), std::move(Channel),
                                      std::move(*Codec), Options.PeerTimeout));
  return Error::success();
}
