//===- PipeWriter.h - Bytes into a pipe -------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PipeWriter: writes to a pipe, optionally without copying. PipeWriter never
/// raises SIGPIPE in the host and does not change the host's signal handling.
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
/// write() copies the bytes to kernel pages, and the reader copies them again.
/// splice() puts the caller's pages into the pipe, so that only the reader
/// copies. If both processes run on one core, this saves one of the two copies.
/// On two cores, it saves more time, because no kernel pages move between the
/// caches of the cores.
///
/// After splice(), the bytes must not change while they are in the pipe. The
/// bytes leave the pipe in two cases. Either the reader has read all bytes,
/// which noteAllRead() records, or takeBack() removes the bytes.
class PipeWriter {
public:
  explicit PipeWriter(posix::UniqueFD End) : End(std::move(End)) {}
  PipeWriter(const PipeWriter &) = delete;
  PipeWriter &operator=(const PipeWriter &) = delete;
  ~PipeWriter() { takeBack(); }

  int get() const { return End.get(); }

  /// Writes like writev(2).
  ssize_t write(Span<const iovec> Pieces);
  /// Writes like vmsplice(2). Calls write() if splicing is not possible.
  ssize_t splice(Span<const iovec> Pieces);
  /// Records that the reader has read all spliced pages.
  void noteAllRead() { HasSpliced = false; }
  /// Removes unread spliced pages from the pipe. Do not use the pipe after
  /// this.
  void takeBack();
  /// Leaves unread spliced pages in the pipe.
  void disown() { HasSpliced = false; }

private:
  template <typename F> static ssize_t withoutSignal(F Write);
  posix::UniqueFD openReadEnd() const;

  posix::UniqueFD End;
  /// A descriptor that takeBack() closes before it opens another descriptor.
  /// Therefore, takeBack() succeeds even if the host has no free descriptors.
  posix::UniqueFD Reserve;
  /// True if the kernel supports RWF_NOSIGNAL, which is new in Linux 6.18. On
  /// older kernels, SIGPIPE is blocked during each write.
  bool HasNoSignalFlag = true;
  enum class Splicing : std::uint8_t { Untried, Works, Fails };
  Splicing State = Splicing::Untried;
  bool HasSpliced = false;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_PIPEWRITER_H
