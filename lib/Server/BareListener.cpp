//===- BareListener.cpp - Where foreign compilers arrive ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Server/BareListener.h"

#include "Transport/PipeChannel.h"

using namespace MLBridge;

/// The kernel does not tell that somebody waits in open(2) at a FIFO, so the
/// listener is looked at this often.
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
  // The old pair goes first: its names are the new one's.
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
  // Its error says that NAME.in has no reader any more.
  Watched.push_back({Pending->Ends.Write.get(), 0, 0});
}

void BareListener::admit(Span<const pollfd> Polled, SessionTable &Into) {
  bool Spoke = !Polled.empty() && Polled[0].revents != 0;
  bool IsGone = !Polled.empty() && Polled[1].revents != 0;
  if (!Spoke && !IsGone && !NextLook.expired())
    return;
  NextLook = Deadline::in(Interval);
  Error Failure;
  if (!Pending) {
    std::optional<PipeEnds> Ends = Pair ? Pair->tryAccept() : std::nullopt;
    if (Ends)
      Pending = {std::move(*Ends), Deadline::in(Options.PeerTimeout)};
    else if (!Pair)
      Failure = renew();
  }
  if (!Pending)
    return Failure ? Into.note(std::move(Failure)) : void();

  // One that thinks long before its first request has nevertheless opened
  // both names.
  if (Spoke || hasWriter(Pending->Ends.Read.get()))
    begin(std::move(*Pending), Into);
  else if (Pending->Until.expired())
    Into.note(Error(ErrorCode::Timeout,
                    "a bare compiler opened " + Name +
                        ".in, and did not open " + Name + ".out within " +
                        posix::formatDuration(Options.PeerTimeout)));
  else if (!IsGone)
    return;
  Pending.reset();
  if (Error E = renew())
    Into.note(std::move(E));
}

void BareListener::begin(PendingConnection Peer, SessionTable &Into) {
  // It cannot be told why.
  if (Error E = Into.checkRoom(Options.MaxSessions))
    return Into.refuse(std::move(E));
  Expected<std::unique_ptr<BaseSerDes>> Codec =
      Options.Formats.create(Format, SerDes::Side::Model);
  if (!Codec)
    return Into.refuse(Codec.takeError());
  ServerSession::Identity Identity;
  Identity.Bare = true;
  Identity.Number = Into.nextNumber();
  auto Channel = std::make_unique<PipeChannel>(
      std::move(Who.Ends), Identity.describe(), Options.MaxMessage);
  Into.admit(
      std::make_unique<ServerSession>(std::move(Identity), std::move(Channel),
                                      std::move(*Codec), Options.PeerTimeout));
}
