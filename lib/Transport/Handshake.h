//===- Handshake.h - How two sides begin a session --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The handshake at the Unix socket NAME.sock: the compiler sends one packet
/// (the hello), the server replies with one (the terms, with the session's
/// descriptors attached). Sessions therefore have no names in the file system,
/// leave no files behind and cannot reach each other.
/// docs/reference/wire-format.md, section Handshake, specifies the packets.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_HANDSHAKE_H
#define MLBRIDGE_LIB_TRANSPORT_HANDSHAKE_H

#include "MLCompilerBridge/Deadline.h"
#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Transport/Transport.h"
#include "Support/Posix.h"
#include "Transport/UnixListener.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace MLBridge {

/// The versions of the protocol that this library supports. Since version 2,
/// each frame on a pipe begins with its request's number, and the doorbell of a
/// shared memory session is a pipe. Version 1 is still supported for pipes.
struct ProtocolVersions {
  static constexpr int First = 1;
  static constexpr int NumberedFrames = 2;
  static constexpr int PipeDoorbell = 2;
  static constexpr int Newest = 2;
};

/// The compiler's packet, which begins the handshake.
struct Hello {
  /// The oldest and the newest version that the compiler supports.
  int Oldest = ProtocolVersions::First;
  int Newest = ProtocolVersions::Newest;
  /// "pipe" or "shm".
  std::string Transport;
  std::string SerDes;
  /// The element type of the advice that the first request expects, as
  /// elementTypeName() spells it; empty if the compiler does not say.
  std::string AdviceType;

  std::string encode() const;
  static Expected<Hello> decode(std::string_view Packet);
  /// Returns the newest version that both sides support; Unsupported if no
  /// version matches.
  Expected<int> chooseVersion() const;
};

/// Why a model that supports version \p Ours of a protocol refuses a compiler
/// that supports version \p Theirs.
std::string versionRefusal(int Ours, std::string_view Theirs);

/// The model side's packet: the terms of the session, or a refusal.
struct Terms {
  /// The version that the session uses.
  int Version = ProtocolVersions::Newest;
  /// Why the model side refuses the session; empty if it accepts.
  std::string Refusal;

  std::string encode() const;
  static Expected<Terms> decode(std::string_view Packet);
};

/// A packet and the descriptors that came with it.
struct Packet {
  std::string Text;
  std::vector<posix::UniqueFD> Descriptors;
  /// True if this process could not open all descriptors of the packet.
  bool HasLostDescriptors = false;
};

/// Sends \p Text with \p Descriptors attached. Never blocks or raises SIGPIPE.
Error sendPacket(int Socket, std::string_view Text,
                 Span<const int> Descriptors);
enum class PacketState { None, Arrived, Ended };
/// Receives one packet without blocking. Ended: the peer closed the connection.
Expected<PacketState> receivePacket(int Socket, Packet &Into);

/// The result of a successful handshake.
struct HandshakeResult {
  posix::UniqueFD Socket;
  std::vector<posix::UniqueFD> Descriptors;
  int Version = ProtocolVersions::Newest;
};
/// The kind of session that a compiler requests.
struct SessionKind {
  const char *Transport;
  /// The oldest version of the protocol that supports this kind.
  int OldestVersion;
  std::size_t NumDescriptors;
};
/// Requests a session of \p Kind from the server at NAME.sock. \p Peer is the
/// server's spec, for messages. nullopt if no server listens there or it closes
/// the connection; it may start later. Connects to a listening server even if
/// \p Until has passed.
Expected<std::optional<HandshakeResult>>
tryHandshake(const std::string &Name, const std::string &Peer,
             const SessionKind &Kind, const SessionRequest &Request,
             Deadline Until);

/// Exponential backoff between attempts to connect, from 1 to 20 ms: a running
/// model side answers within 1 ms, and waiting for one to start should not
/// occupy a core.
class Backoff {
public:
  /// Sleeps for the next interval, at most until \p Until.
  void wait(Deadline Until);

private:
  std::chrono::milliseconds Next{1};
};

/// The Timeout of a connect() that found no listener at \p Peer within
/// \p Waited. The message says what was \p Found and how to start the peer.
Error noListenerError(const std::string &Peer, const std::string &Found,
                      Duration Waited, PeerRole Role);
/// Explains why no process listens at the socket \p Path; empty if it is not a
/// socket.
std::string describeUnusedSocket(const std::string &Path);

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_HANDSHAKE_H
