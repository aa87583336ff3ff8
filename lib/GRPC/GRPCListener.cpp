//===- GRPCListener.cpp - Listens for compilers by gRPC -------------------===//
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
  GRPCListener(std::string Name, ListenerOptions Options, ServerSpec Spec,
               std::unique_ptr<AcceptQueue> Pending)
      : Name(std::move(Name)), Options(std::move(Options)),
        Spec(std::move(Spec)), Pending(std::move(Pending)) {}

  const std::string &name() const override { return Name; }
  void addPolls(std::vector<pollfd> &Watched) const override {
    Watched.push_back({Pending->doorbell(), POLLIN, 0});
  }
  void accept(Span<const pollfd> Polled, SessionTable &Sessions) override;

private:
  Error begin(const PendingSession &Session, SessionTable &Sessions);

  std::string Name;
  ListenerOptions Options;
  ServerSpec Spec;
  std::unique_ptr<AcceptQueue> Pending;
};

} // namespace

Expected<std::unique_ptr<Listener>>
MLBridge::openGRPCListener(std::string_view Text, ListenerOptions Options) {
  Expected<ServerSpec> Spec = ServerSpec::parse(
      Text, Options.MaxMessage, Options.MaxSessions, Options.Formats);
  if (!Spec)
    return Spec.takeError();
  // Check the SerDes of a user's own service now rather than in the first
  // session.
  if (!Spec->Method.empty())
    if (Error E =
            Options.Formats.create(Spec->DefaultSerDes, SerDes::Side::Model)
                .takeError())
      return E;
  Options.MaxMessage = Spec->MaxMessage;
  Options.MaxSessions = Spec->MaxSessions;
  Expected<std::unique_ptr<AcceptQueue>> Pending = AcceptQueue::open(
      Spec->Address, Inference, Spec->Method,
      {Options.MaxMessage, Options.PeerTimeout, Spec->Credentials});
  if (!Pending)
    return Pending.takeError();
  return std::make_unique<GRPCListener>(nameOf((*Pending)->address()),
                                        std::move(Options), std::move(*Spec),
                                        std::move(*Pending));
}

void GRPCListener::accept(Span<const pollfd> Polled, SessionTable &Sessions) {
  if (Polled.front().revents == 0)
    return;
  for (PendingSession &Session : Pending->takePending())
    if (Error E = begin(Session, Sessions)) {
      // If the server is full, end an idle session. Try again when that session
      // is gone.
      if (Sessions.checkRoom(Options.MaxSessions) && Pending->endIdle()) {
        Pending->enqueue(std::move(Session));
        continue;
      }
      Session.refuse(E.message());
      Sessions.refuse(std::move(E));
    }
}

Error GRPCListener::begin(const PendingSession &Session,
                          SessionTable &Sessions) {
  const ServerCall &Call = *Session.First;
  if (Error E = Sessions.checkRoom(Options.MaxSessions))
    return E;
  Expected<std::unique_ptr<BaseSerDes>> Codec = Options.Formats.create(
      Call.metadata(Metadata::SerDes, Spec.DefaultSerDes), SerDes::Side::Model);
  if (!Codec)
    return Codec.takeError();
  ServerSession::Identity Identity;
  Identity.Number = Sessions.nextNumber();
  Identity.AdviceType = Call.metadata(Metadata::AdviceType, {});
  const std::string Pid = Call.metadata(Metadata::Pid, {});
  std::from_chars(Pid.data(), Pid.data() + Pid.size(), Identity.Pid);
  auto Channel = std::make_unique<GRPCServerChannel>(
      Session.Requests, Session.Stream, Identity.describe(), Options.MaxMessage,
      !Spec.Method.empty());
  Sessions.add(
      std::make_unique<ServerSession>(std::move(Identity), std::move(Channel),
                                      std::move(*Codec), Options.PeerTimeout));
  return Error::success();
}
