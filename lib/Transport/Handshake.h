//===- Handshake.h - How two sides begin a session --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The handshake at the Unix socket NAME.sock: one packet there (the hello),
/// one back (the terms, with the session's descriptors attached). Since the
/// ends of the pipes travel as descriptors, no session ever has a name in the
/// file system, and nothing of one can be left behind or reach another. The
/// bytes: docs/wire-format.md, section Handshake.
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

/// The versions of the protocol that this library speaks. In version 2 a frame
/// on a pipe begins with its request's number, and the model's doorbell in
/// shared memory is a pipe; version 1 is still understood for pipes.
struct ProtocolVersions {
  static constexpr int First = 1;
  static constexpr int NumberedFrames = 2;
  static constexpr int PipeDoorbell = 2;
  static constexpr int Newest = 2;
};

/// What the compiler says first.
struct Hello {
  /// The oldest version and the newest one that it speaks.
  int Oldest = ProtocolVersions::First;
  int Newest = ProtocolVersions::Newest;
  /// "pipe" or "shm".
  std::string Transport;
  std::string SerDes;
  /// elementTypeName() of the first advice wanted, or empty.
  std::string AdviceType;

  std::string encode() const;
  static Expected<Hello> decode(std::string_view Packet);
  /// The version for a session with such a compiler: the newest that both
  /// sides speak. An error in words where there is none.
  Expected<int> chooseVersion() const;
};

/// What a model that speaks version \p Ours of a protocol says to a compiler
/// that speaks version \p Theirs.
std::string versionRefusal(int Ours, std::string_view Theirs);

/// What the model side answers: a refusal in words, or success.
struct Terms {
  /// Which version the session uses.
  int Version = ProtocolVersions::Newest;
  std::string Refusal;

  std::string encode() const;
  static Expected<Terms> decode(std::string_view Packet);
};

/// A packet and the descriptors that came with it.
struct Packet {
  std::string Text;
  std::vector<posix::UniqueFD> Descriptors;
  /// Whether there were more that this process has no room for.
  bool HasLostDescriptors = false;
};

/// Sends \p Text with \p Descriptors attached. Never blocks, never raises
/// SIGPIPE.
Error sendPacket(int Socket, std::string_view Text,
                 Span<const int> Descriptors);
/// Receives one packet, without waiting.
enum class PacketState { None, Arrived, Ended };
Expected<PacketState> receivePacket(int Socket, Packet &Into);

/// A handshake that succeeded: the socket, and what the terms brought.
struct HandshakeResult {
  posix::UniqueFD Socket;
  std::vector<posix::UniqueFD> Descriptors;
  int Version = ProtocolVersions::Newest;
};
/// Which session a compiler wants.
struct SessionKind {
  const char *Transport;
  /// The oldest version of the protocol that serves.
  int OldestVersion;
  std::size_t NumDescriptors;
};
/// Meets the server at NAME.sock, which \p Peer calls by its spec, for a
/// session of that \p Kind. None if nobody listens there, or no longer: it may
/// come back. If \p Until has passed, a peer that listens is met all the same.
Expected<std::optional<HandshakeResult>>
tryHandshake(const std::string &Name, const std::string &Peer,
             const SessionKind &Kind, const SessionRequest &Request,
             Deadline Until);

/// Looks for the model side ever less often: it answers within a millisecond
/// when it is up, and a compiler that waits for one to be started should not
/// burn its core.
class Backoff {
public:
  void pause(Deadline Until);
  /// That it was in vain, and what to do.
  static Error noListenerAt(const std::string &Peer, const std::string &Found,
                            Duration Waited, PeerRole Role);
  /// What is wrong with the socket at \p Path; empty where there is none.
  static std::string whyNoListenerAt(const std::string &Path);

private:
  std::chrono::milliseconds Next{1};
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_HANDSHAKE_H
