//===- ForkDetector.h - Whether this process was forked ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines ForkDetector, which detects that an object is used in a forked child
/// of the process that created it. fork(2) copies the object, but the copy may
/// be unusable. For example, a session belongs to the parent, and a library's
/// threads do not exist in the child.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_SUPPORT_FORKDETECTOR_H
#define MLBRIDGE_LIB_SUPPORT_FORKDETECTOR_H

#include <sys/types.h>

namespace MLBridge {

/// Detects a fork. Create a ForkDetector together with an object that a child
/// must not use. isForked() reads a mark in a page that the kernel clears in
/// every child (MADV_WIPEONFORK). Therefore, isForked() is fast enough to be
/// called for every message. If the kernel does not support MADV_WIPEONFORK,
/// isForked() makes a system call.
class ForkDetector {
public:
  ForkDetector();
  ~ForkDetector();
  ForkDetector(const ForkDetector &) = delete;
  ForkDetector &operator=(const ForkDetector &) = delete;

  /// Returns whether the caller runs in a child of the owner, the process that
  /// created this object or last called claim().
  bool isForked() const {
    return Mark ? *static_cast<const volatile char *>(Mark) == 0
                : isOtherProcess();
  }

  /// Makes this process the owner. A child calls this function after it has
  /// created a new object.
  void claim();

private:
  bool isOtherProcess() const;

  void *Mark = nullptr;
  pid_t Owner;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_SUPPORT_FORKDETECTOR_H
