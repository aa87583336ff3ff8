//===- PipeTransport.cpp - The compiler's end of a pipe session -*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/PipeTransport.h"

#include "Transport/BarePipes.h"
#include "Transport/FifoChannel.h"
#include "Transport/Meeting.h"

#include <algorithm>
#include <optional>
#include <poll.h>

using namespace MLBridge;
using posix::UniqueFD;

namespace {

class PipeTransport final : public Transport {
public:
  PipeTransport(std::string Name, TransportOptions Options)
      : Name(std::move(Name)), Options(Options) {}

  Expected<SessionTerms> connect(const SessionRequest &Request,
                                 Deadline Until) override;
  bool isConnected() const override { return Channel.has_value(); }
  void close() override { Channel.reset(); }

  Expected<Span<std::byte>> acquire(std::size_t Size) override {
    if (!Channel)
      return notConnected();
    return Channel->acquire(Size);
  }
  Error commit(std::size_t Size, Deadline Until) override {
    return Channel ? Channel->commit(Size, Until) : notConnected();
  }
  Error send(Span<const Span<const std::byte>> Pieces,
             Deadline Until) override {
    if (!Channel)
      return notConnected();
    // A foreign peer may answer before it has read all of the question.
    return IsBare ? Channel->send(Pieces, Until) : Channel->lend(Pieces, Until);
  }
  Expected<Span<const std::byte>> receive(Deadline Until) override {
    if (!Channel)
      return notConnected();
    return Channel->receive(Until);
  }
  std::string describe() const override { return "pipe:" + Name; }

private:
  Error notConnected() const {
    return Error(ErrorCode::PeerClosed, describe() + " is not connected");
  }
  SessionTerms begin(FifoEnds Ends, bool Bare);
  Expected<std::optional<FifoEnds>> tryMeet(const SessionRequest &Request,
                                            Deadline Until);
  Expected<FifoEnds> meet(const UniqueFD &Socket, const SessionRequest &Request,
                          Deadline Until);
  Error nobodyThere() const;

  std::string Name;
  TransportOptions Options;
  std::optional<FifoChannel> Channel;
  bool IsBare = false;
};

} // namespace

/// Looks for the model side ever less often: it answers within a millisecond
/// when it is up, and a compiler that waits for one to be started should not
/// burn its core.
static void pause(std::chrono::milliseconds &Pause, Deadline Until) {
  int Left = Until.pollTimeout();
  int Wait = static_cast<int>(Pause.count());
  ::poll(nullptr, 0, Left < 0 ? Wait : std::min(Left, Wait));
  Pause = std::min(2 * Pause, std::chrono::milliseconds(20));
}

Expected<SessionTerms> PipeTransport::connect(const SessionRequest &Request,
                                              Deadline Until) {
  Channel.reset();
  BarePipeClient Bare(Name);
  std::chrono::milliseconds Pause(1);
  for (;; pause(Pause, Until)) {
    Expected<std::optional<FifoEnds>> Met = tryMeet(Request, Until);
    if (!Met)
      return Met.takeError();
    if (*Met)
      return begin(std::move(**Met), /*Bare=*/false);

    Expected<std::optional<FifoEnds>> Opened = Bare.tryOpen();
    if (!Opened)
      return Opened.takeError();
    if (*Opened) {
      // A server of ours makes its socket first and its FIFOs then: if it has
      // started between our two looks, it is there to be met now.
      Met = tryMeet(Request, Until);
      if (!Met)
        return Met.takeError();
      return *Met ? begin(std::move(**Met), /*Bare=*/false)
                  : begin(std::move(**Opened), /*Bare=*/true);
    }
    if (Until.expired())
      return nobodyThere();
  }
}

SessionTerms PipeTransport::begin(FifoEnds Ends, bool Bare) {
  Channel.emplace(std::move(Ends), describe(), Options.MaxMessage);
  IsBare = Bare;
  SessionTerms Terms;
  Terms.Bare = Bare;
  return Terms;
}

/// The ends of a session with the server at NAME.sock; none if nobody listens
/// there, or no longer: it may come back.
Expected<std::optional<FifoEnds>>
PipeTransport::tryMeet(const SessionRequest &Request, Deadline Until) {
  Expected<UniqueFD> Socket = tryConnect(Name + ".sock");
  if (!Socket)
    return Socket.takeError();
  if (!*Socket)
    return std::optional<FifoEnds>();
  if (!posix::isTrustedPeer(Socket->get()))
    return Error(ErrorCode::System,
                 "another user listens at " + Name +
                     ".sock, whose model is not asked; choose another name");
  Expected<FifoEnds> Ends = meet(*Socket, Request, Until);
  if (Ends)
    return std::optional<FifoEnds>(std::move(*Ends));
  if (Ends.code() == ErrorCode::PeerClosed)
    return std::optional<FifoEnds>();
  return Ends.takeError();
}

Expected<FifoEnds> PipeTransport::meet(const UniqueFD &Socket,
                                       const SessionRequest &Request,
                                       Deadline Until) {
  Hello Ours;
  Ours.Transport = "pipe";
  Ours.SerDes = Request.SerDes;
  Ours.AdviceType = Request.AdviceType;
  Error Gone(ErrorCode::PeerClosed,
             describe() + " closed the connection while we met");
  if (sendPacket(Socket.get(), Ours.encode(), {}))
    return Gone;

  Packet Answer;
  for (;;) {
    pollfd FD{Socket.get(), POLLIN, 0};
    int Ready = ::poll(&FD, 1, Until.pollTimeout());
    Expected<PacketState> State = receivePacket(Socket.get(), Answer);
    if (!State)
      return State.takeError();
    if (*State == PacketState::Ended)
      return Gone;
    if (*State == PacketState::Arrived)
      break;
    if (Ready == 0 && Until.expired())
      return Error(ErrorCode::Timeout,
                   describe() + " accepted the connection, but did not say "
                                "hello before the deadline: is the model side "
                                "stopped or busy?");
  }
  Expected<Terms> Theirs = Terms::decode(Answer.Text);
  if (!Theirs)
    return Theirs.takeError();
  if (!Theirs->Refusal.empty())
    return Error(ErrorCode::Unsupported,
                 describe() + " refused this session: " + Theirs->Refusal);
  if (Answer.Descriptors.size() != 2)
    return Error(ErrorCode::Malformed,
                 describe() + " sent " +
                     std::to_string(Answer.Descriptors.size()) +
                     " descriptors for a session; expected 2 pipe ends");
  pid_t Pid;
  return FifoEnds{std::move(Answer.Descriptors[0]),
                  std::move(Answer.Descriptors[1]),
                  posix::processOfPeer(Socket.get(), Pid)};
}

Error PipeTransport::nobodyThere() const {
  std::string Found =
      posix::fileKind(Name + ".sock") == posix::FileKind::Socket
          ? "the socket " + Name + ".sock is there, but nobody listens"
      : posix::fileKind(Name + ".in") == posix::FileKind::Fifo
          ? "the FIFO " + Name +
                ".in is there, but nobody serves it, or "
                "another compiler uses it"
          : "there is neither " + Name + ".sock nor " + Name + ".in";
  return Error(ErrorCode::Timeout,
               "no model at " + describe() + " within " +
                   posix::formatDuration(Options.ConnectTimeout) + ": " +
                   Found +
                   "; start the model side (Python: mlbridge.serve("
                   "policy, \"" +
                   describe() + "\")) or wait longer (connect=)");
}

std::unique_ptr<Transport>
MLBridge::createPipeTransport(std::string Name, TransportOptions Options) {
  return std::make_unique<PipeTransport>(std::move(Name), Options);
}
