//===- BarePipes.h - NAME.in and NAME.out, for foreign peers ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The FIFOs that the reference implementation and LLVM's own channels use: the
/// model side creates NAME.in and NAME.out; the compiler reads the first and
/// writes the second. Without a handshake, there is only one compiler at a
/// time, and the death of a peer shows only as the end of the file.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_BAREPIPES_H
#define MLBRIDGE_LIB_TRANSPORT_BAREPIPES_H

#include "Transport/PipeFrames.h"

#include <optional>

namespace MLBridge {

/// The compiler's side.
class BarePipeClient {
public:
  explicit BarePipeClient(std::string Name) : Name(std::move(Name)) {}
  /// Opens both FIFOs. nullopt while they are missing, not opened by a model
  /// side, or used by another compiler. System if one is another kind of file
  /// or belongs to another user.
  Expected<std::optional<PipeEnds>> tryOpen();

private:
  std::string Name;
  /// Stays open between attempts: a model side that opens NAME.in first blocks
  /// until it has a reader.
  posix::UniqueFD Read;
};

/// The model's side: a pair of FIFOs for one session. The next session gets a
/// new pair, so that no byte of a dead session can reach it.
class BarePipePair {
public:
  /// Creates NAME.in and NAME.out, mode 0600, replacing those of a dead server.
  static Expected<BarePipePair> create(const std::string &Name);

  /// Returns the ends once a compiler has opened NAME.in; nullopt before. The
  /// names exist as long as this object, since the compiler opens NAME.out
  /// next; the ends may outlive it.
  std::optional<PipeEnds> tryAccept();

private:
  /// Owns a FIFO and removes it, unless it has been replaced.
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

/// Whether a process has opened the other end of the FIFO \p ReadEnd, or data
/// is left in it. Slow: creates a pipe.
bool hasWriter(int ReadEnd);

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_BAREPIPES_H
