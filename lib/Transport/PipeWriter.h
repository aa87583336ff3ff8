//===- PipeWriter.h - Bytes into a pipe -------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PipeWriter: writes to a pipe without ever raising SIGPIPE in the host, whose
/// signal dispositions are not ours to change, and can do so without copying.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TRANSPORT_PIPEWRITER_H
#define MLBRIDGE_LIB_TRANSPORT_PIPEWRITER_H

#include "MLCompilerBridge/Span.h"
#include "Support/Posix.h"

#include <sys/uio.h>

namespace MLBridge {

/// The write end of a pipe.
///
/// write() copies into pages of the kernel's, and the reader copies out of
/// them. lend() puts the pages of \p Pieces themselves into the pipe, so that
/// the reader's is the only copy: half of the work on one core and, since the
/// kernel's pages need not wander between them, less than half on two. In
/// return the bytes are not sent until they are read: they must stay as they
/// are until the reader has shown that it has them all, or until takeBack().
class PipeWriter {
public:
  explicit PipeWriter(posix::UniqueFD End) : End(std::move(End)) {}
  PipeWriter(const PipeWriter &) = delete;
  PipeWriter &operator=(const PipeWriter &) = delete;
  ~PipeWriter() { takeBack(); }

  int get() const { return End.get(); }

  /// As writev(2).
  ssize_t write(Span<const iovec> Pieces);
  /// The same by lending; by writing where that cannot be done.
  ssize_t lend(Span<const iovec> Pieces);
  /// The reader has read all that was lent.
  void noteReturn() { IsLent = false; }
  /// Takes what is lent and not read yet out of the pipe, which is of no use
  /// any more.
  void takeBack();
  /// Leaves what is lent in the pipe.
  void disown() { IsLent = false; }

private:
  template <typename F> static ssize_t withoutSignal(F Write);
  posix::UniqueFD openReadEnd() const;

  posix::UniqueFD End;
  /// Keeps a descriptor free for takeBack(), which must not fail because the
  /// host has run out of them.
  posix::UniqueFD Reserve;
  /// Since Linux 6.18 the kernel can write without a signal; before, the
  /// signal is blocked around the write.
  bool KernelHelps = true;
  enum class Lending : std::uint8_t { Untried, Works, Fails };
  Lending State = Lending::Untried;
  bool IsLent = false;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_PIPEWRITER_H
