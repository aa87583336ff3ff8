//===- PipeTransport.cpp - The compiler's end of a pipe session -----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Transport/PipeTransport.h"

#include "Support/ForkDetector.h"
#include "Support/PrintableText.h"
#include "Transport/BarePipes.h"
#include "Transport/Handshake.h"
#include "Transport/PipeClient.h"

#include <fcntl.h>
#include <optional>

using namespace MLBridge;

namespace {

class PipeTransport final : public Transport {
public:
  PipeTransport(std::string Name, TransportOptions Options)
      : Name(std::move(Name)), Peer("pipe:" + printable(this->Name)),
        Options(Options) {}
  ~PipeTransport() override { close(); }

  Expected<SessionTerms> connect(const SessionRequest &Request,
                                 Deadline Until) override;
  bool isConnected() const override {
    return Client.has_value() && !Fork.isForked();
  }
  void close() override {
    // In a forked child, leave the pipes as they are, because the parent
    // continues the session.
    if (Client && Fork.isForked())
      Client->disown();
    Client.reset();
  }

  Expected<Span<std::byte>> acquire(std::size_t Size) override {
    if (!Client)
      return notConnected();
    return Client->acquire(Size);
  }
  Error commit(std::size_t Size, Deadline Until) override {
    if (!Client)
      return notConnected();
    if (Error E = Client->checkSilence())
      return E;
    return Client->sendRegion(Size, Until);
  }
  Error send(Span<const Span<const std::byte>> Pieces,
             Deadline Until) override {
    if (!Client)
      return notConnected();
    if (Error E = Client->checkSilence())
      return E;
    // Do not splice to a foreign peer, because it may reply before it has read
    // the whole request. After the reply, the caller may change the pieces.
    return IsBare ? Client->sendPieces(Pieces, Until)
                  : Client->sendWithoutCopy(Pieces, Until);
  }
  Expected<Span<const std::byte>> receive(Deadline Until) override {
    if (!Client)
      return notConnected();
    return Client->receive(Until);
  }
  std::string describe() const override { return Peer; }

private:
  Error notConnected() const {
    return Error(ErrorCode::PeerClosed, Peer + " is not connected");
  }
  SessionTerms begin(PipeEnds Ends, bool Bare);
  Expected<std::optional<PipeEnds>> tryHandshake(const SessionRequest &Request,
                                                 Deadline Until);
  Error noListener(PeerRole Role) const;

  std::string Name;
  /// The transport's spec, for error messages.
  std::string Peer;
  TransportOptions Options;
  std::optional<PipeClient> Client;
  /// Detects a forked child. The session belongs to the process that connected.
  ForkDetector Fork;
  bool IsBare = false;
};

} // namespace

Expected<SessionTerms> PipeTransport::connect(const SessionRequest &Request,
                                              Deadline Until) {
  close();
  BarePipeClient Bare(Name);
  for (Backoff Interval;; Interval.wait(Until)) {
    Expected<std::optional<PipeEnds>> Ends = tryHandshake(Request, Until);
    if (!Ends)
      return Ends.takeError();
    if (*Ends)
      return begin(std::move(**Ends), /*Bare=*/false);

    Expected<std::optional<PipeEnds>> Opened = Bare.tryOpen();
    if (!Opened)
      return Opened.takeError();
    // Ignore the FIFOs if the server is dead and only a child of the server
    // still holds the FIFOs. The child never answers.
    if (*Opened && !isOrphaned(Name + ".sock")) {
      // Repeat the handshake. A server of this library may have started after
      // the first handshake failed. Such a server creates its socket before its
      // FIFOs, so the handshake succeeds now.
      Ends = tryHandshake(Request, Until);
      if (!Ends)
        return Ends.takeError();
      return *Ends ? begin(std::move(**Ends), /*Bare=*/false)
                   : begin(std::move(**Opened), /*Bare=*/true);
    }
    if (Until.expired())
      return noListener(Request.Peer);
  }
}

SessionTerms PipeTransport::begin(PipeEnds Ends, bool Bare) {
  Client.emplace(std::move(Ends), Peer, Options.MaxMessage);
  Fork.claim();
  IsBare = Bare;
  SessionTerms Terms;
  Terms.Bare = Bare;
  return Terms;
}

/// Requests a session from the server at NAME.sock. Returns nullopt if no
/// server listens at NAME.sock.
Expected<std::optional<PipeEnds>>
PipeTransport::tryHandshake(const SessionRequest &Request, Deadline Until) {
  static constexpr SessionKind Kind{"pipe", ProtocolVersions::First,
                                    /*NumDescriptors=*/2};
  Expected<std::optional<HandshakeResult>> Found =
      MLBridge::tryHandshake(Name, Peer, Kind, Request, Until);
  if (!Found)
    return Found.takeError();
  if (!*Found)
    return std::optional<PipeEnds>();
  auto &[Socket, Descriptors, Version] = **Found;
  Expected<posix::UniqueFD> Read =
      posix::openOwnPipeEnd(Descriptors[0], O_RDONLY, "the pipe from " + Peer);
  if (!Read)
    return Read.takeError();
  Expected<posix::UniqueFD> Write =
      posix::openOwnPipeEnd(Descriptors[1], O_WRONLY, "the pipe to " + Peer);
  if (!Write)
    return Write.takeError();
  pid_t Pid;
  return std::optional<PipeEnds>(
      PipeEnds{std::move(*Read), std::move(*Write),
               posix::processOfPeer(Socket.get(), Pid),
               /*IsNumbered=*/Version >= ProtocolVersions::NumberedFrames});
}

Error PipeTransport::noListener(PeerRole Role) const {
  std::string Found = describeUnusedSocket(Name + ".sock");
  if (Found.empty())
    Found = posix::isFifo(Name + ".in")
                ? "the FIFO " + printable(Name) +
                      ".in exists, but no server has opened it, or another "
                      "compiler uses it"
                : "neither " + printable(Name) + ".sock nor " +
                      printable(Name) + ".in exists";
  return noListenerError(Peer, Found, Options.ConnectTimeout, Role);
}

std::unique_ptr<Transport>
MLBridge::createPipeTransport(std::string Name, TransportOptions Options) {
  return std::make_unique<PipeTransport>(std::move(Name), Options);
}
