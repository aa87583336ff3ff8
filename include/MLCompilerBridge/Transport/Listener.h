//===- Listener.h - Accepts compilers for a server --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines Listener, which accepts connections from compilers for a ModelServer
/// and opens a session for each connection. A server may have several
/// listeners.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRANSPORT_LISTENER_H
#define MLCOMPILERBRIDGE_TRANSPORT_LISTENER_H

#include "MLCompilerBridge/Deadline.h"
#include "MLCompilerBridge/SerDes/SerDesFactory.h"
#include "MLCompilerBridge/Transport/Transport.h"

#include <memory>
#include <string>
#include <vector>

struct pollfd; // NOLINT(readability-identifier-naming): poll(2) names it.

namespace MLBridge {

class SessionTable;

/// The options of all listeners.
struct ListenerOptions {
  /// The SerDes formats that the listener accepts. A program can add formats,
  /// as examples/own-serdes.cpp does.
  SerDesFactory Formats;
  /// The maximum size of a message, in bytes. A longer message ends its
  /// session.
  std::size_t MaxMessage = TransportOptions().MaxMessage;
  /// The time limit for a compiler to begin the handshake, and to read each
  /// reply.
  Duration PeerTimeout = std::chrono::seconds(10);
  /// The maximum number of open sessions. Further compilers are refused with a
  /// message.
  std::size_t MaxSessions = 4096;
};

/// Accepts connections. No function of a Listener blocks, because one thread of
/// the server waits for all listeners and sessions with a single poll(2). Only
/// one thread at a time may use a Listener.
class Listener {
public:
  virtual ~Listener();

  /// Returns the address as in a compiler's spec, but without the scheme, such
  /// as "/tmp/advisor" or "//127.0.0.1:50051".
  virtual const std::string &name() const = 0;

  /// Appends the descriptors that poll(2) should watch.
  virtual void addPolls(std::vector<pollfd> &Watched) const = 0;
  /// Returns the time at which the server must call accept() even if no
  /// descriptor is ready.
  virtual Deadline wakeUp() const { return Deadline::never(); }
  /// Accepts connections. When a handshake is complete, adds its session to
  /// \p Sessions. \p Polled holds the entries of the last addPolls(), with the
  /// results of poll(2).
  virtual void accept(Span<const pollfd> Polled, SessionTable &Sessions) = 0;
};

/// Listens at NAME.sock, where \p Name is a path. Compilers that use this
/// library connect to NAME.sock and open sessions through pipes or shared
/// memory. If \p BareFormat is the name of a SerDes, also creates the FIFOs
/// NAME.in and NAME.out. One foreign compiler at a time can use them, with this
/// SerDes.
///
/// The files have mode 0600, so only processes of this user can connect.
/// Replaces the files of a server that has died. Returns InvalidArgument if a
/// running server already uses \p Name.
Expected<std::unique_ptr<Listener>>
openLocalListener(std::string Name, std::string BareFormat = {},
                  ListenerOptions Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_LISTENER_H
