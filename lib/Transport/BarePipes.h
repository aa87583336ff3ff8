//===- BarePipes.h - NAME.in and NAME.out, for foreign peers ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Sessions through two FIFOs, without a handshake. The reference
/// implementation and LLVM's own channels use this form. The model side creates
/// NAME.in and NAME.out. The compiler reads from NAME.in and writes to
/// NAME.out. Only one compiler can connect at a time. A side notices that the
/// other side has died only when it reads the end of the file.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_BAREPIPES_H
#define MLBRIDGE_LIB_TRANSPORT_BAREPIPES_H

#include "Transport/PipeFrames.h"

#include <optional>

namespace MLBridge {

/// The compiler's side of a session through two FIFOs.
class BarePipeClient {
public:
  explicit BarePipeClient(std::string Name) : Name(std::move(Name)) {}
  /// Opens both FIFOs. Returns nullopt if a FIFO is missing, if no model side
  /// has opened the FIFOs, or if another compiler uses them. Returns a System
  /// error if a path is not a FIFO or if a FIFO belongs to another user.
  Expected<std::optional<PipeEnds>> tryOpen();

private:
  std::string Name;
  /// The read end of NAME.in. It stays open between attempts, because a model
  /// side that opens NAME.in may block until NAME.in has a reader.
  posix::UniqueFD Read;
};

/// The model's side: a pair of FIFOs for one session. The next session gets a
/// new pair. Therefore, a session never receives bytes of a dead session.
class BarePipePair {
public:
  /// Creates NAME.in and NAME.out with mode 0600. If a dead server has left
  /// FIFOs with these names, the new FIFOs replace them.
  static Expected<BarePipePair> create(const std::string &Name);

  /// Returns the pipe ends if a compiler has opened NAME.in. Otherwise returns
  /// nullopt. Keep this object until the compiler has opened NAME.out, too,
  /// because its destructor removes both names. The returned ends stay valid
  /// after that.
  std::optional<PipeEnds> tryAccept();

private:
  /// Owns the name of a FIFO. The destructor removes the name, unless another
  /// FIFO has replaced this one.
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

/// Returns true if a process has opened the other end of the FIFO \p ReadEnd,
/// or if the FIFO still contains data. This function is slow because it creates
/// a pipe.
bool hasWriter(int ReadEnd);

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_BAREPIPES_H
