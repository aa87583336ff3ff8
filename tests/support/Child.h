//===- tests/support/Child.h - A forked child process -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Child: a forked process that a test can stop, kill and reap.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_SUPPORT_CHILD_H
#define MLBRIDGE_TESTS_SUPPORT_CHILD_H

#include <functional>
#include <sys/types.h>

namespace MLBridge::test {

/// Runs a function in a forked process, which exits with the function's result.
/// The test must have no other threads. The destructor kills and reaps the
/// process.
class Child {
public:
  explicit Child(const std::function<int()> &Main);
  ~Child();
  Child(const Child &) = delete;
  Child &operator=(const Child &) = delete;

  pid_t pid() const { return Pid; }
  void signal(int Number) const;
  /// Sends SIGKILL and reaps the process.
  void kill();
  /// Waits for the end of the process. Returns the exit status, or 128 plus the
  /// number of the signal that ended the process.
  int wait();

private:
  pid_t Pid;
};

/// These functions return the number of this process's open descriptors, and
/// its resident memory in bytes.
std::size_t countOpenDescriptors();
std::size_t residentBytes();

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_SUPPORT_CHILD_H
