//===- tests/support/Child.h - A process of the test's own ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Child: a forked process that a fault test stops, kills and reaps.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_SUPPORT_CHILD_H
#define MLBRIDGE_TESTS_SUPPORT_CHILD_H

#include <functional>
#include <sys/types.h>

namespace MLBridge::test {

/// Runs a function in a forked process, which then exits with its result. The
/// test must have no other threads. Destroying it kills and reaps it.
class Child {
public:
  explicit Child(const std::function<int()> &Main);
  ~Child();
  Child(const Child &) = delete;
  Child &operator=(const Child &) = delete;

  pid_t pid() const { return Pid; }
  void signal(int Number) const;
  /// Sends SIGKILL and reaps.
  void kill();
  /// Waits until it exits: its status, or 128 + the signal that ended it.
  int wait();

private:
  pid_t Pid;
};

/// Numbers of this process's open descriptors, and of its resident memory.
std::size_t countOpenDescriptors();
std::size_t residentBytes();

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_SUPPORT_CHILD_H
