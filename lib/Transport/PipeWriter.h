//===- PipeWriter.h - Bytes into a pipe -------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PipeWriter: writes to a pipe, optionally without copying. It never raises
/// SIGPIPE in the host and does not change the host's signal handling.
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
/// write() copies the bytes to kernel pages, from which the reader copies them
/// again. splice() puts the caller's pages into the pipe, so that only the
/// reader copies: half of the work on one core, and less than half on two,
/// since no kernel pages move between their caches. In return, the bytes must
/// not change until the reader has read them all (noteAllRead()) or until
/// takeBack().
class PipeWriter {
public:
  explicit PipeWriter(posix::UniqueFD End) : End(std::move(End)) {}
  PipeWriter(const PipeWriter &) = delete;
  PipeWriter &operator=(const PipeWriter &) = delete;
  ~PipeWriter() { takeBack(); }

  int get() const { return End.get(); }

  /// Like writev(2).
  ssize_t write(Span<const iovec> Pieces);
  /// Like vmsplice(2); calls write() if splicing is not possible.
  ssize_t splice(Span<const iovec> Pieces);
  /// Says that the reader has read all spliced pages.
  void noteAllRead() { HasSpliced = false; }
  /// Removes unread spliced pages from the pipe, which must not be used after
  /// that.
  void takeBack();
  /// Leaves unread spliced pages in the pipe.
  void disown() { HasSpliced = false; }

private:
  template <typename F> static ssize_t withoutSignal(F Write);
  posix::UniqueFD openReadEnd() const;

  posix::UniqueFD End;
  /// Reserves a descriptor for takeBack(), which must not fail if the host has
  /// run out of descriptors.
  posix::UniqueFD Reserve;
  /// Whether the kernel supports RWF_NOSIGNAL (Linux 6.18). Otherwise SIGPIPE
  /// is blocked around each write.
  bool HasNoSignalFlag = true;
  enum class Splicing : std::uint8_t { Untried, Works, Fails };
  Splicing State = Splicing::Untried;
  bool HasSpliced = false;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_TRANSPORT_PIPEWRITER_H
