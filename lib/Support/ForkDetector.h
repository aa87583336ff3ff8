//===- ForkDetector.h - Whether this process was forked ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ForkDetector: tells an object that it is used in a child of the process that
/// made it. fork(2) copies an object but not what it stands for: the other end
/// of a session knows one peer, and a library's threads do not exist in the
/// child.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SUPPORT_FORKDETECTOR_H
#define MLBRIDGE_LIB_SUPPORT_FORKDETECTOR_H

#include <sys/types.h>

namespace MLBridge {

/// Make one beside what must not be used by a child. isForked() is one load, so
/// it may be called for every message: the mark lies in a page that the kernel
/// clears in children (MADV_WIPEONFORK), however they are made. Where the
/// kernel cannot do that, it costs a system call.
class ForkDetector {
public:
  ForkDetector();
  ~ForkDetector();
  ForkDetector(const ForkDetector &) = delete;
  ForkDetector &operator=(const ForkDetector &) = delete;

  /// Whether the caller is a child of the process that made this object.
  bool isForked() const {
    return Mark ? *static_cast<const volatile char *>(Mark) == 0
                : isOtherProcess();
  }

  /// From now on the caller's process counts as the maker: what the object
  /// stands for has been made anew.
  void claim();

private:
  bool isOtherProcess() const;

  void *Mark = nullptr;
  pid_t Maker;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SUPPORT_FORKDETECTOR_H
