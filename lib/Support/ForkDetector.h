//===- ForkDetector.h - Whether this process was forked ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ForkDetector: detects use of an object in a forked child of the process that
/// created it. fork(2) copies the object, but the peer of a session knows only
/// the parent, and the threads of a library do not exist in the child.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SUPPORT_FORKDETECTOR_H
#define MLBRIDGE_LIB_SUPPORT_FORKDETECTOR_H

#include <sys/types.h>

namespace MLBridge {

/// Put one next to an object that a child must not use. isForked() is a single
/// load, so it may be called for every message: the mark lies in a page that
/// the kernel clears in every child (MADV_WIPEONFORK). Where the kernel does
/// not support that, isForked() is a system call.
class ForkDetector {
public:
  ForkDetector();
  ~ForkDetector();
  ForkDetector(const ForkDetector &) = delete;
  ForkDetector &operator=(const ForkDetector &) = delete;

  /// Whether the caller runs in a child of the owning process.
  bool isForked() const {
    return Mark ? *static_cast<const volatile char *>(Mark) == 0
                : isOtherProcess();
  }

  /// Makes the caller's process the owner, after it has recreated the object.
  void claim();

private:
  bool isOtherProcess() const;

  void *Mark = nullptr;
  pid_t Owner;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SUPPORT_FORKDETECTOR_H
