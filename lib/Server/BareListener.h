//===- BareListener.h - Listens for foreign compilers -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines BareListener, which waits for a foreign compiler to open the FIFOs
/// NAME.in and NAME.out. Such a compiler uses the reference implementation or
/// LLVM's interactive model runner.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SERVER_BARELISTENER_H
#define MLBRIDGE_LIB_SERVER_BARELISTENER_H

#include "Server/SessionTable.h"
#include "Transport/BarePipes.h"

#include <optional>

namespace MLBridge {

/// Accepts one compiler at a time. When a compiler has opened both FIFOs, they
/// are replaced by a new pair, so that the next compiler cannot open the same
/// FIFOs.
class BareListener {
public:
  static Expected<BareListener> open(const std::string &Name,
                                     std::string Format,
                                     const ListenerOptions &Options);

  void addPolls(std::vector<pollfd> &Watched) const;
  Deadline wakeUp() const { return NextPoll; }
  void accept(Span<const pollfd> Polled, SessionTable &Sessions);

private:
  BareListener(std::string Name, std::string Format, ListenerOptions Options,
               BarePipePair Pair)
      : Name(std::move(Name)), Format(std::move(Format)),
        Options(std::move(Options)), Pair(std::move(Pair)) {}

  /// A compiler that has opened NAME.in. It may not have opened NAME.out yet.
  struct PendingConnection {
    PipeEnds Ends;
    Deadline Until;
  };
  void begin(PendingConnection Connection, SessionTable &Sessions);
  /// Replaces the pair of FIFOs with a new pair.
  Error renew();

  std::string Name;
  std::string Format;
  ListenerOptions Options;
  std::optional<BarePipePair> Pair;
  std::optional<PendingConnection> Pending;
  Deadline NextPoll = Deadline::in(Duration::zero());
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SERVER_BARELISTENER_H
