//===- Listener.h - Where compilers connect to a server ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Listener: accepts the connections of compilers to a ModelServer and turns
/// them into sessions. A server may have several listeners.
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
  /// The SerDes formats that the listener accepts. Add those of other
  /// components or your own (examples/own-serdes.cpp).
  SerDesFactory Formats;
  /// The limit on a message, in bytes. A longer one ends its session.
  std::size_t MaxMessage = TransportOptions().MaxMessage;
  /// How long a compiler may take to begin the handshake or to accept a reply.
  Duration PeerTimeout = std::chrono::seconds(10);
  /// The limit on concurrent sessions. Further compilers are refused with a
  /// message.
  std::size_t MaxSessions = 4096;
};

/// No function here blocks: the server waits for all of its listeners and
/// sessions at once. Used by one thread at a time.
class Listener {
public:
  virtual ~Listener();

  /// The address as in a compiler's spec, without the scheme: "/tmp/advisor",
  /// "//127.0.0.1:50051".
  virtual const std::string &name() const = 0;

  /// Appends the descriptors that poll(2) should watch.
  virtual void addPolls(std::vector<pollfd> &Watched) const = 0;
  /// When to call accept() even if no descriptor is ready.
  virtual Deadline wakeUp() const { return Deadline::never(); }
  /// Accepts connections and adds the sessions of completed handshakes to
  /// \p Sessions. \p Polled holds the entries of the last addPolls() after
  /// poll(2).
  virtual void accept(Span<const pollfd> Polled, SessionTable &Sessions) = 0;
};

/// Listens at NAME.sock, where compilers that use this library open sessions
/// over pipes or shared memory. If \p BareFormat names a SerDes, also creates
/// NAME.in and NAME.out for one foreign compiler at a time, which uses that
/// SerDes. The files have mode 0600, so only processes of this user can
/// connect. Files of a dead server are replaced; a live server there is an
/// InvalidArgument.
Expected<std::unique_ptr<Listener>>
openLocalListener(std::string Name, std::string BareFormat = {},
                  ListenerOptions Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_LISTENER_H
