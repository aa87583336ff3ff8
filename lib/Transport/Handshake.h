//===- Handshake.h - How two sides begin a session --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The handshake at the Unix socket NAME.sock. The compiler sends one packet,
/// the hello. The server replies with one packet, the terms. The descriptors of
/// the session are attached to the terms, so a session needs no name in the
/// file system. It leaves no files behind, and no other process can open it by
/// a name. The packets are specified in docs/reference/wire-format.md, section
/// Handshake.
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

/// The versions of the protocol that this library supports. Version 1 is
/// supported only for pipes. Version 2 has two differences:
/// - Each frame on a pipe begins with its request's number.
/// - The doorbell of a session through shared memory is a pipe.
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
  /// elementTypeName() spells it. Empty if the compiler does not send the type.
  std::string AdviceType;

  std::string encode() const;
  static Expected<Hello> decode(std::string_view Packet);
  /// Returns the newest version that both sides support. Returns an Unsupported
  /// error if the sides have no version in common.
  Expected<int> chooseVersion() const;
};

/// Returns the text with which a model refuses a compiler. The model supports
/// version \p Ours of a protocol, and the compiler supports \p Theirs.
std::string versionRefusal(int Ours, std::string_view Theirs);

/// The model side's packet: the terms of the session, or a refusal.
struct Terms {
  /// The version that the session uses.
  int Version = ProtocolVersions::Newest;
  /// The model side's reason for refusing the session. Empty if the model side
  /// accepts the session.
  std::string Refusal;

  std::string encode() const;
  static Expected<Terms> decode(std::string_view Packet);
};

/// A packet and the descriptors that were attached to it.
struct Packet {
  std::string Text;
  std::vector<posix::UniqueFD> Descriptors;
  /// True if this process could not open all descriptors of the packet.
  bool HasLostDescriptors = false;
};

/// Sends \p Text with \p Descriptors attached. This function never blocks and
/// never raises SIGPIPE.
Error sendPacket(int Socket, std::string_view Text,
                 Span<const int> Descriptors);
enum class PacketState { None, Arrived, Ended };
/// Receives one packet without blocking. Returns Ended if the peer has closed
/// the connection.
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
/// server's spec, for error messages. Returns nullopt if no server listens at
/// NAME.sock, or if the server closes the connection. The caller can then try
/// again, because a server may start later. Even if \p Until has passed, the
/// function tries once.
Expected<std::optional<HandshakeResult>>
tryHandshake(const std::string &Name, const std::string &Peer,
             const SessionKind &Kind, const SessionRequest &Request,
             Deadline Until);

/// Exponential backoff between attempts to connect. The intervals grow from 1
/// to 20 ms. The first interval is short because a running model side answers
/// within 1 ms. Later intervals are longer so that a compiler that waits for a
/// starting model does not occupy a core.
class Backoff {
public:
  /// Sleeps for the next interval, but not after \p Until.
  void wait(Deadline Until);

private:
  std::chrono::milliseconds Next{1};
};

/// Returns the Timeout error of a connect() that found no listener at \p Peer
/// within \p Waited. The message contains \p Found, which describes the state
/// of the socket, and explains how to start the peer.
Error noListenerError(const std::string &Peer, const std::string &Found,
                      Duration Waited, PeerRole Role);
/// Explains why no process listens at the socket \p Path. Returns an empty
/// string if \p Path is not a socket.
std::string describeUnusedSocket(const std::string &Path);

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_HANDSHAKE_H
