//===- BareListener.h - Where foreign compilers arrive ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// BareListener: NAME.in and NAME.out, at which a foreign compiler (one of the
/// reference implementation, or LLVM's own channels) arrives by opening them.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SERVER_BARELISTENER_H
#define MLBRIDGE_LIB_SERVER_BARELISTENER_H

#include "Server/SessionTable.h"
#include "Transport/BarePipes.h"

#include <optional>

namespace MLBridge {

/// One at a time may arrive; as soon as it needs the names no more, there is a
/// fresh pair for the next. Not any sooner, or that one would open this one's.
class BareListener {
public:
  static Expected<BareListener> open(const std::string &Name,
                                     std::string Format,
                                     const ListenerOptions &Options);

  void addPolls(std::vector<pollfd> &Watched) const;
  Deadline wakeUp() const { return NextLook; }
  void admit(Span<const pollfd> Polled, SessionTable &Into);

private:
  BareListener(std::string Name, std::string Format, ListenerOptions Options,
               BarePipePair Pair)
      : Name(std::move(Name)), Format(std::move(Format)),
        Options(std::move(Options)), Pair(std::move(Pair)) {}

  /// Who has opened NAME.in, and has NAME.out still to open.
  struct PendingConnection {
    PipeEnds Ends;
    Deadline Until;
  };
  void begin(PendingConnection Peer, SessionTable &Into);
  Error renew();

  std::string Name;
  std::string Format;
  ListenerOptions Options;
  std::optional<BarePipePair> Pair;
  std::optional<PendingConnection> Pending;
  Deadline NextLook = Deadline::in(Duration::zero());
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SERVER_BARELISTENER_H
