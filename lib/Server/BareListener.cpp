//===- BareListener.cpp - Listens for foreign compilers -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Server/BareListener.h"

#include "Transport/PipeChannel.h"

using namespace MLBridge;

/// The interval between two checks for a compiler. Checks are necessary because
/// poll(2) does not report a process that blocks in open(2) on a FIFO.
static constexpr std::chrono::milliseconds Interval(20);

Expected<BareListener> BareListener::open(const std::string &Name,
                                          std::string Format,
                                          const ListenerOptions &Options) {
  if (auto Codec = Options.Formats.create(Format, SerDes::Side::Model); !Codec)
    return Codec.takeError();
  Expected<BarePipePair> Pair = BarePipePair::create(Name);
  if (!Pair)
    return Pair.takeError();
  return BareListener(Name, std::move(Format), Options, std::move(*Pair));
}

Error BareListener::renew() {
  // Remove the old FIFOs first, because the new ones have the same names.
  Pair.reset();
  Expected<BarePipePair> Fresh = BarePipePair::create(Name);
  if (!Fresh)
    return Fresh.takeError();
  Pair.emplace(std::move(*Fresh));
  return Error::success();
}

void BareListener::addPolls(std::vector<pollfd> &Watched) const {
  if (!Pending)
    return;
  Watched.push_back({Pending->Ends.Read.get(), POLLIN, 0});
  // Watch only for POLLERR, which means that the reader of NAME.in is gone.
  Watched.push_back({Pending->Ends.Write.get(), 0, 0});
}

void BareListener::accept(Span<const pollfd> Polled, SessionTable &Sessions) {
  bool HasData = !Polled.empty() && Polled[0].revents != 0;
  bool IsGone = !Polled.empty() && Polled[1].revents != 0;
  if (!HasData && !IsGone && !NextPoll.expired())
    return;
  NextPoll = Deadline::in(Interval);
  Error Failure;
  if (!Pending) {
    std::optional<PipeEnds> Ends = Pair ? Pair->tryAccept() : std::nullopt;
    if (Ends)
      Pending = {std::move(*Ends), Deadline::in(Options.PeerTimeout)};
    else if (!Pair)
      Failure = renew();
  }
  if (!Pending) {
    if (Failure)
      Sessions.reportError(std::move(Failure));
    return;
  }

  // Begin the session when the compiler has opened NAME.out. Its first request
  // may follow much later.
  if (HasData || hasWriter(Pending->Ends.Read.get()))
    begin(std::move(*Pending), Sessions);
  else if (Pending->Until.expired())
    Sessions.reportError(Error(ErrorCode::Timeout,
                               "a compiler in bare mode opened " + Name +
                                   ".in but did not open " + Name +
                                   ".out within " +
                                   posix::formatDuration(Options.PeerTimeout)));
  else if (!IsGone)
    return;
  Pending.reset();
  if (Error E = renew())
    Sessions.reportError(std::move(E));
}

void BareListener::begin(PendingConnection Connection, SessionTable &Sessions) {
  // Only record a refusal, because a foreign compiler cannot receive the
  // reason.
  if (Error E = Sessions.checkRoom(Options.MaxSessions))
    return Sessions.refuse(std::move(E));
  Expected<std::unique_ptr<BaseSerDes>> Codec =
      Options.Formats.create(Format, SerDes::Side::Model);
  if (!Codec)
    return Sessions.refuse(Codec.takeError());
  ServerSession::Identity Identity;
  Identity.Bare = true;
  Identity.Number = Sessions.nextNumber();
  auto Channel = std::make_unique<PipeChannel>(
      std::move(Connection.Ends), Identity.describe(), Options.MaxMessage);
  Sessions.add(
      std::make_unique<ServerSession>(std::move(Identity), std::move(Channel),
                                      std::move(*Codec), Options.PeerTimeout));
}
