//===- AllocationCounter.h - Counts heap requests ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AllocationCounter: how often this thread asked for heap memory, through
/// whatever function, since the counter was made. Also under sanitizers.
/// AllocationFailure: memory that runs out for this thread.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_SUPPORT_ALLOCATIONCOUNTER_H
#define MLBRIDGE_TESTS_SUPPORT_ALLOCATIONCOUNTER_H

#include <cstddef>

namespace MLBridge::test {

class AllocationCounter {
public:
  std::size_t count() const { return total() - Start; }

private:
  /// Since this thread began.
  static std::size_t total();
  std::size_t Start = total();
};

/// While it lives, one request of this thread's fails: the one \p After others.
class AllocationFailure {
public:
  explicit AllocationFailure(std::size_t After);
  ~AllocationFailure();
  AllocationFailure(const AllocationFailure &) = delete;
  AllocationFailure &operator=(const AllocationFailure &) = delete;

  /// Whether that request has come.
  bool hasHappened() const;
  /// Not under sanitizers, whose memory is their own.
  static bool isPossible();
};

/// How often \p Round asks for memory in ten rounds, after three to warm up.
template <typename F> std::size_t allocationsOnceWarm(F Round) {
  for (int I = 0; I < 3; ++I)
    Round();
  AllocationCounter Allocations;
  for (int I = 0; I < 10; ++I)
    Round();
  return Allocations.count();
}

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_SUPPORT_ALLOCATIONCOUNTER_H
