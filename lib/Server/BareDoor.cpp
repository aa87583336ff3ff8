//===- BareDoor.cpp - Where foreign compilers arrive ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Server/BareDoor.h"

#include "Transport/PipeChannel.h"

using namespace MLBridge;

/// The kernel does not tell that somebody waits in open(2) at a FIFO, so the
/// door is looked at this often.
static constexpr std::chrono::milliseconds Interval(20);

Expected<BareDoor> BareDoor::open(const std::string &Name, std::string Format,
                                  const DoorOptions &Options) {
  if (auto Codec = Options.Formats.create(Format, SerDes::Side::Model); !Codec)
    return Codec.takeError();
  Expected<BarePipePair> Pair = BarePipePair::create(Name);
  if (!Pair)
    return Pair.takeError();
  return BareDoor(Name, std::move(Format), Options, std::move(*Pair));
}

Error BareDoor::renew() {
  // The old pair goes first: its names are the new one's.
  Pair.reset();
  Expected<BarePipePair> Fresh = BarePipePair::create(Name);
  if (!Fresh)
    return Fresh.takeError();
  Pair.emplace(std::move(*Fresh));
  return Error::success();
}

void BareDoor::addPolls(std::vector<pollfd> &Watched) const {
  if (!Arriving)
    return;
  Watched.push_back({Arriving->Ends.Read.get(), POLLIN, 0});
  // Its error says that NAME.in has no reader any more.
  Watched.push_back({Arriving->Ends.Write.get(), 0, 0});
}

void BareDoor::admit(Span<const pollfd> Polled, Reception &Into) {
  bool Spoke = !Polled.empty() && Polled[0].revents != 0;
  bool IsGone = !Polled.empty() && Polled[1].revents != 0;
  if (!Spoke && !IsGone && !NextLook.expired())
    return;
  NextLook = Deadline::in(Interval);
  Error Failure;
  if (!Arriving) {
    std::optional<PipeEnds> Ends = Pair ? Pair->tryAccept() : std::nullopt;
    if (Ends)
      Arriving = {std::move(*Ends), Deadline::in(Options.PeerTimeout)};
    else if (!Pair)
      Failure = renew();
  }
  if (!Arriving)
    return Failure ? Into.note(std::move(Failure)) : void();

  // One that thinks long before its first question has nevertheless opened
  // both names.
  if (Spoke || hasWriter(Arriving->Ends.Read.get()))
    begin(std::move(*Arriving), Into);
  else if (Arriving->Until.expired())
    Into.note(Error(ErrorCode::Timeout,
                    "a bare compiler opened " + Name +
                        ".in, and did not open " + Name + ".out within " +
                        posix::formatDuration(Options.PeerTimeout)));
  else if (!IsGone)
    return;
  Arriving.reset();
  if (Error E = renew())
    Into.note(std::move(E));
}

void BareDoor::begin(Newcomer Who, Reception &Into) {
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
