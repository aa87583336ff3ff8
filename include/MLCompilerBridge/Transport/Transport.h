//===- Transport.h - Sends and receives messages ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines Transport, which sends and receives messages before a deadline. A
/// transport does not interpret the bytes of a message.
///
/// **To write a transport**, derive a class and override connect(),
/// isConnected(), close(), acquire(), commit(), receive() and describe().
/// docs/guides/extending.md explains how to do this, and how to test the
/// transport with the conformance suite.
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

/// The kind of peer. Error messages use it to name the program that the user
/// must start.
enum class PeerRole : std::uint8_t {
  /// The peer replies to a compiler's requests.
  Model,
  /// The peer acts in a compiler's environment. It listens, as a model does.
  Trainer,
  /// The peer serves an environment and listens for a trainer.
  Compiler,
};

/// The contents of the handshake that the compiler's side sends.
struct SessionRequest {
  /// The BaseSerDes::name() of the session's format.
  std::string_view SerDes;
  /// The elementTypeName() of the advice that the first request expects, or
  /// empty.
  std::string_view AdviceType;
  /// The kind of peer, for error messages. It is not sent to the peer.
  PeerRole Peer = PeerRole::Model;
};

/// The result of the handshake.
struct SessionTerms {
  /// True for a foreign peer on pipes without a handshake. See
  /// BaseSerDes::setDialect().
  bool Bare = false;
};

/// The compiler's end of a session. Only one thread at a time may use a
/// Transport.
///
/// If commit(), send() or receive() returns an error, the session must end,
/// because bytes of the abandoned request or its reply may still arrive.
/// Therefore, the caller calls close(). Afterwards, it may call connect()
/// again.
class Transport {
public:
  virtual ~Transport();

  /// Connects to the peer. Waits until \p Until for the peer to start.
  virtual Expected<SessionTerms> connect(const SessionRequest &Request,
                                         Deadline Until) = 0;
  /// Returns whether there is an open session. Returns false in a child process
  /// that was forked after connect(), because the session belongs to the
  /// parent.
  virtual bool isConnected() const = 0;
  virtual void close() = 0;
  /// Returns the time that connect() needs to find out whether a peer is
  /// listening. To avoid waiting for a peer that has not started, pass this
  /// time to connect() as the deadline.
  virtual Duration timeToLook() const { return Duration::zero(); }

  /// Returns memory for the next message. The memory has at least \p Size bytes
  /// and starts 8 bytes after a 64-byte boundary. It is valid until commit() or
  /// the next acquire().
  virtual Expected<Span<std::byte>> acquire(std::size_t Size) = 0;
  /// Sends the first \p Size bytes of the memory from acquire().
  virtual Error commit(std::size_t Size, Deadline Until) = 0;
  /// Sends the concatenation of \p Pieces as one message. The pieces must stay
  /// valid until the reply has been received or close() returns. The default
  /// implementation copies the pieces to memory from acquire().
  virtual Error send(Span<const Span<const std::byte>> Pieces, Deadline Until);
  /// Waits for the peer's next message and returns it. The message is followed
  /// by MessagePlacement::Padding readable bytes. It is valid until the next
  /// call of a function of this object.
  virtual Expected<Span<const std::byte>> receive(Deadline Until) = 0;

  /// Returns whether the messages are in shared memory. If so, the peer can
  /// write to the memory that receive() returns, and the memory that acquire()
  /// returns still contains an earlier message.
  virtual bool isShared() const { return false; }

  /// Returns the peer's name for error messages, such as "pipe:/tmp/advisor".
  virtual std::string describe() const = 0;
};

/// The options of every transport of this library.
struct TransportOptions {
  /// The maximum time to wait for the peer to start.
  Duration ConnectTimeout = std::chrono::seconds(30);
  /// The maximum size of a message, in bytes. A longer message ends the
  /// session.
  std::size_t MaxMessage = std::size_t(1) << 30;
};

struct ModelSpec;
/// Parses the options `connect` and `max-message`. Every runner for a model in
/// another process accepts these options.
Expected<TransportOptions> transportOptions(const ModelSpec &Spec);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_TRANSPORT_H
