//===- Listener.h - Where compilers meet a model --------------------*- C++
//-*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Listener: a place where compilers come to a ModelServer. A server may have
/// several, one a transport; each turns those who arrive into sessions.
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

struct pollfd; // NOLINT(readability-identifier-naming): that of poll(2).

namespace MLBridge {

class SessionTable;

/// What all listeners can be told.
struct ListenerOptions {
  /// What compilers may speak. Add to it to serve a format of another component
  /// or of your own (examples/own-serdes.cpp).
  SerDesFactory Formats;
  /// A compiler that announces a longer message is refused.
  std::size_t MaxMessage = TransportOptions().MaxMessage;
  /// How long a compiler may take to accept a reply, or to say hello.
  Duration PeerTimeout = std::chrono::seconds(10);
  /// How many compilers the server may have at a time. More are refused, and
  /// told so.
  std::size_t MaxSessions = 4096;
};

/// Nothing here waits: the server does, for all of its listeners and sessions.
/// Used by one thread at a time.
class Listener {
public:
  virtual ~Listener();

  /// How a compiler's spec names it, without the scheme: "/tmp/advisor",
  /// "//127.0.0.1:50051".
  virtual const std::string &name() const = 0;

  /// Adds what poll(2) should watch.
  virtual void addPolls(std::vector<pollfd> &Watched) const = 0;
  /// When to look again though nothing has happened.
  virtual Deadline wakeUp() const { return Deadline::never(); }
  /// Takes in who has arrived. \p Polled is what addPolls() added, after
  /// poll(2).
  virtual void admit(Span<const pollfd> Polled, SessionTable &Into) = 0;
};

/// NAME.sock, where compilers with this library meet the model for a session by
/// pipe or shm. With a \p BareFormat also NAME.in and NAME.out, for foreign
/// compilers, one at a time, which speak that SerDes. Mode 0600: only this
/// user's compilers get in. What a dead server left there is taken over;
/// another live one is an error.
Expected<std::unique_ptr<Listener>>
openLocalListener(std::string Name, std::string BareFormat = {},
                  ListenerOptions Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRANSPORT_LISTENER_H
