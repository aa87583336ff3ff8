//===- Transport.h - Frames of bytes to a peer and back ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Transport: moves one message there and one back, each before a deadline. It
/// knows nothing of what the bytes mean.
///
/// **To write one**, derive and override connect(), isConnected(), close(),
/// acquire(), commit(), receive() and describe(). docs/extending.md says how,
/// and the conformance suite takes it by one line.
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

/// Whom a transport meets, so that a message can say what to start.
enum class PeerRole : std::uint8_t {
  /// Answers a compiler's requests.
  Model,
  /// Drives a compiler's environment, and listens as a model does.
  Trainer,
  /// Serves an environment, and listens for its trainer.
  Compiler,
};

/// What the two sides tell each other when they meet.
struct SessionRequest {
  /// BaseSerDes::name() of the messages to come.
  std::string_view SerDes;
  /// elementTypeName() of the advice that the first request wants, or empty.
  std::string_view AdviceType;
  /// For messages; the peer is not told.
  PeerRole Peer = PeerRole::Model;
};

/// What they have agreed on.
struct SessionTerms {
  /// The peer is a foreign one that knows no meeting, only bare pipes: see
  /// BaseSerDes::setDialect.
  bool Bare = false;
};

/// The compiler's end of a session. Used by one thread at a time.
///
/// After an error from commit(), send() or receive() the session is over: what
/// is still on its way belongs to a request that was given up, so nothing of
/// it may be read. The caller calls close(), and may connect() again.
class Transport {
public:
  virtual ~Transport();

  /// Meets the peer. Waits for it to appear.
  virtual Expected<SessionTerms> connect(const SessionRequest &Request,
                                         Deadline Until) = 0;
  /// False also in a child that was forked after connect(): the session is its
  /// parent's.
  virtual bool isConnected() const = 0;
  virtual void close() = 0;
  /// How long connect() needs to find out whether the peer is there, for a
  /// caller that does not want to wait for it to appear.
  virtual Duration timeToLook() const { return Duration::zero(); }

  /// A region for the next message: at least \p Size bytes that start 8 bytes
  /// behind a 64-byte boundary. Valid until commit() or the next acquire().
  virtual Expected<Span<std::byte>> acquire(std::size_t Size) = 0;
  /// Sends the first \p Size bytes of the region.
  virtual Error commit(std::size_t Size, Deadline Until) = 0;
  /// Sends a message that lies in pieces, which may be read until its answer
  /// has been received or close() returns. Unless overridden, this copies them
  /// to the region.
  virtual Error send(Span<const Span<const std::byte>> Pieces, Deadline Until);
  /// The peer's next message, followed by MessagePlacement::Padding readable
  /// bytes. Valid until the next call to this object.
  virtual Expected<Span<const std::byte>> receive(Deadline Until) = 0;

  /// Whether what receive() returns lies in memory that the peer can write to;
  /// and what acquire() returns, in memory that keeps what was written there.
  virtual bool isShared() const { return false; }

  /// The peer, for messages: "pipe:/tmp/advisor".
  virtual std::string describe() const = 0;
};

/// What every transport of this library can be told.
struct TransportOptions {
  /// How long to wait for the peer to appear.
  Duration ConnectTimeout = std::chrono::seconds(30);
  /// A peer that announces a longer message than this is refused.
  std::size_t MaxMessage = std::size_t(1) << 30;
};

struct ModelSpec;
/// The options of a spec that every inter-process runner takes: `connect`,
/// `max-message`.
Expected<TransportOptions> transportOptions(const ModelSpec &Spec);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_TRANSPORT_H
