//===- BarePipes.h - NAME.in and NAME.out, for foreign peers ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The FIFOs that the reference implementation and LLVM's own channels use:
/// the model side makes NAME.in and NAME.out; the compiler reads the first and
/// writes the second. There is no meeting, so the two sides know little of
/// each other: one compiler at a time, and death shows only as the end of the
/// file.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_BAREPIPES_H
#define MLBRIDGE_LIB_TRANSPORT_BAREPIPES_H

#include "Transport/PipeFrames.h"

#include <optional>

namespace MLBridge {

/// The compiler's half. Opens both FIFOs if a model side has them open too;
/// nothing while they are missing, unserved, or used by another compiler.
/// Anything there that is not a FIFO is an error.
class BarePipeClient {
public:
  explicit BarePipeClient(std::string Name) : Name(std::move(Name)) {}
  Expected<std::optional<PipeEnds>> tryOpen();

private:
  std::string Name;
  /// Kept between attempts: a model side that opens NAME.in first waits for
  /// this end.
  posix::UniqueFD Read;
};

/// The model's half: a pair of FIFOs that waits for one compiler. A pair
/// serves one session; then it is removed and a fresh one is made, so no byte
/// of a dead session can reach the next.
class BarePipePair {
public:
  /// Makes NAME.in and NAME.out, mode 0600, in place of those that a dead
  /// server left.
  static Expected<BarePipePair> create(const std::string &Name);

  /// The ends, once a compiler has opened NAME.in. The names stay as long as
  /// this pair, since it opens NAME.out next; the ends outlive both.
  std::optional<PipeEnds> tryAccept();

private:
  /// A FIFO that is removed with its owner, unless somebody replaced it.
  class NamedFifo {
  public:
    static Expected<NamedFifo> make(std::string Path);
    NamedFifo() = default;
    NamedFifo(NamedFifo &&Other) noexcept { *this = std::move(Other); }
    NamedFifo &operator=(NamedFifo &&Other) noexcept {
      std::swap(Path, Other.Path);
      std::swap(Identity, Other.Identity);
      return *this;
    }
    ~NamedFifo() { posix::unlinkIfSame(Path, Identity); }
    const std::string &path() const { return Path; }

  private:
    std::string Path;
    posix::FileIdentity Identity;
  };

  NamedFifo In, Out;
  posix::UniqueFD Read;
};

/// Whether somebody has opened the other end of the FIFO \p ReadEnd for
/// writing, or has left something in it. Not for those who ask often.
bool hasWriter(int ReadEnd);

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_BAREPIPES_H
