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

#include <optional>

using namespace MLBridge;

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
    return Channel ? Channel->sendRegion(Size, Until) : notConnected();
  }
  Error send(Span<const Span<const std::byte>> Pieces,
             Deadline Until) override {
    if (!Channel)
      return notConnected();
    // A foreign peer may answer before it has read all of the question.
    return IsBare ? Channel->sendPieces(Pieces, Until)
                  : Channel->lend(Pieces, Until);
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
  Error nobodyThere() const;

  std::string Name;
  TransportOptions Options;
  std::optional<FifoChannel> Channel;
  bool IsBare = false;
};

} // namespace

Expected<SessionTerms> PipeTransport::connect(const SessionRequest &Request,
                                              Deadline Until) {
  Channel.reset();
  BarePipeClient Bare(Name);
  for (Lookout Out;; Out.pause(Until)) {
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

/// The ends of a session with the server at NAME.sock, if there is one.
Expected<std::optional<FifoEnds>>
PipeTransport::tryMeet(const SessionRequest &Request, Deadline Until) {
  auto Met = MLBridge::tryMeet(Name, describe(), "pipe", Request,
                               /*NumDescriptors=*/2, Until);
  if (!Met)
    return Met.takeError();
  if (!*Met)
    return std::optional<FifoEnds>();
  auto &[Socket, Descriptors] = **Met;
  pid_t Pid;
  return std::optional<FifoEnds>(
      FifoEnds{std::move(Descriptors[0]), std::move(Descriptors[1]),
               posix::processOfPeer(Socket.get(), Pid)});
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
  return Lookout::nobodyAt(describe(), Found, Options.ConnectTimeout);
}

std::unique_ptr<Transport>
MLBridge::createPipeTransport(std::string Name, TransportOptions Options) {
  return std::make_unique<PipeTransport>(std::move(Name), Options);
}
