//===- Transport.h - Frames of bytes to a peer and back ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Transport: sends one message and receives one, each before a deadline. It
/// does not interpret the bytes.
///
/// **To write one**, derive and override connect(), isConnected(), close(),
/// acquire(), commit(), receive() and describe(). docs/guides/extending.md
/// explains how, and one line adds the transport to the conformance suite.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRANSPORT_TRANSPORT_H
#define MLCOMPILERBRIDGE_TRANSPORT_TRANSPORT_H

#include "MLCompilerBridge/Deadline.h"
#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Span.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace MLBridge {

/// The kind of peer, so that an error message can say what to start.
enum class PeerRole : std::uint8_t {
  /// Answers a compiler's requests.
  Model,
  /// Drives a compiler's environment, and listens as a model does.
  Trainer,
  /// Serves an environment, and listens for its trainer.
  Compiler,
};

/// What the compiler's side states in the handshake.
struct SessionRequest {
  /// BaseSerDes::name() of the session's messages.
  std::string_view SerDes;
  /// elementTypeName() of the advice that the first request expects, or empty.
  std::string_view AdviceType;
  /// For error messages; not sent to the peer.
  PeerRole Peer = PeerRole::Model;
};

/// The result of the handshake.
struct SessionTerms {
  /// True for a foreign peer on bare pipes, which knows no handshake: see
  /// BaseSerDes::setDialect.
  bool Bare = false;
};

/// The compiler's end of a session. Used by one thread at a time.
///
/// An error from commit(), send() or receive() ends the session: bytes still in
/// transit belong to an abandoned request and must not be read. The caller
/// calls close(), and may connect() again.
class Transport {
public:
  virtual ~Transport();

  /// Connects to the peer. Waits until \p Until for it to appear.
  virtual Expected<SessionTerms> connect(const SessionRequest &Request,
                                         Deadline Until) = 0;
  /// Whether there is an open session. False in a child forked after connect():
  /// the session belongs to the parent.
  virtual bool isConnected() const = 0;
  virtual void close() = 0;
  /// How long connect() takes to find out whether a peer is listening. For
  /// callers that do not wait for the peer to appear.
  virtual Duration timeToLook() const { return Duration::zero(); }

  /// Returns a region for the next message: at least \p Size bytes that start 8
  /// bytes after a 64-byte boundary. Valid until commit() or the next
  /// acquire().
  virtual Expected<Span<std::byte>> acquire(std::size_t Size) = 0;
  /// Sends the first \p Size bytes of the region.
  virtual Error commit(std::size_t Size, Deadline Until) = 0;
  /// Sends the concatenation of \p Pieces, which must stay valid until the
  /// reply has been received or close() returns. The default copies them to a
  /// region.
  virtual Error send(Span<const Span<const std::byte>> Pieces, Deadline Until);
  /// Waits for the peer's next message, which is followed by
  /// MessagePlacement::Padding readable bytes. Valid until the next call to
  /// this object.
  virtual Expected<Span<const std::byte>> receive(Deadline Until) = 0;

  /// True if the peer can write to the memory that receive() returns, and the
  /// memory that acquire() returns keeps its contents.
  virtual bool isShared() const { return false; }

  /// The peer, for error messages: "pipe:/tmp/advisor".
  virtual std::string describe() const = 0;
};

/// The options of every transport of this library.
struct TransportOptions {
  /// How long to wait for the peer to appear.
  Duration ConnectTimeout = std::chrono::seconds(30);
  /// The limit on a message, in bytes. A longer one ends the session.
  std::size_t MaxMessage = std::size_t(1) << 30;
};

struct ModelSpec;
/// Parses the options `connect` and `max-message`, which every inter-process
/// runner accepts.
Expected<TransportOptions> transportOptions(const ModelSpec &Spec);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_TRANSPORT_H
