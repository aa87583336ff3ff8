//===- PipeWriter.cpp - Bytes into a pipe ---------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transport/PipeWriter.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <string>
#include <unistd.h>

// Debian 12's headers do not define this flag. write() checks at run time
// whether the kernel supports it.
#ifndef RWF_NOSIGNAL
#define RWF_NOSIGNAL 0x00000100
#endif

using namespace MLBridge;
using posix::UniqueFD;

/// Calls \p Write with SIGPIPE blocked. Consumes the signal if \p Write raised
/// it.
template <typename F> ssize_t PipeWriter::withoutSignal(F Write) {
  sigset_t Sigpipe, Before, Pending;
  sigemptyset(&Sigpipe);
  sigaddset(&Sigpipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &Sigpipe, &Before);
  // Remember whether the host itself has blocked SIGPIPE and the signal is
  // pending. Such a signal must stay pending.
  bool WasPending = false;
  if (sigismember(&Before, SIGPIPE) == 1) {
    sigpending(&Pending);
    WasPending = sigismember(&Pending, SIGPIPE) == 1;
  }
  ssize_t Written = Write();
  int WriteErrno = errno;
  if (Written < 0 && WriteErrno == EPIPE && !WasPending) {
    timespec Now{0, 0};
    while (sigtimedwait(&Sigpipe, nullptr, &Now) < 0 && errno == EINTR)
      ;
  }
  pthread_sigmask(SIG_SETMASK, &Before, nullptr);
  errno = WriteErrno;
  return Written;
}

ssize_t PipeWriter::write(Span<const iovec> Pieces) {
  const int Count = static_cast<int>(Pieces.size());
  if (HasNoSignalFlag) {
    ssize_t Written =
        ::pwritev2(End.get(), Pieces.data(), Count, -1, RWF_NOSIGNAL);
    if (Written >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS))
      return Written;
    HasNoSignalFlag = false;
  }
  return withoutSignal(
      [&] { return ::writev(End.get(), Pieces.data(), Count); });
}

ssize_t PipeWriter::splice(Span<const iovec> Pieces) {
  // Splice only if takeBack() will be able to open the read end.
  if (State == Splicing::Untried) {
    State = openReadEnd() ? Splicing::Works : Splicing::Fails;
    Reserve = UniqueFD(::open("/proc/self/fd", O_PATH | O_CLOEXEC));
  }
  if (!Reserve)
    State = Splicing::Fails;
  if (State == Splicing::Fails)
    return write(Pieces);

  ssize_t Written = withoutSignal([&] {
    return ::vmsplice(End.get(), Pieces.data(), Pieces.size(),
                      SPLICE_F_NONBLOCK);
  });
  if (Written > 0)
    HasSpliced = true;
  if (Written >= 0 || errno == EAGAIN || errno == EINTR || errno == EPIPE)
    return Written;
  // Fall back to write(). A sandbox may forbid vmsplice(2), and some memory,
  // for example the memory of a device, has no pages to splice.
  State = Splicing::Fails;
  return write(Pieces);
}

UniqueFD PipeWriter::openReadEnd() const {
  std::string Path = "/proc/self/fd/" + std::to_string(End.get());
  return UniqueFD(::open(Path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

void PipeWriter::takeBack() {
  if (!std::exchange(HasSpliced, false))
    return;
  Reserve.reset();
  UniqueFD Read = openReadEnd();
  std::byte Discarded[4096];
  ssize_t Count = 0;
  do
    Count = ::read(Read.get(), Discarded, sizeof(Discarded));
  while (Count > 0 || (Count < 0 && errno == EINTR));
}
