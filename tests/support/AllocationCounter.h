//===- AllocationCounter.h - Counts heap allocations ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AllocationCounter counts all heap allocations of the calling thread since
/// the counter's construction. It also works under sanitizers.
/// AllocationFailure makes one allocation of the calling thread fail.
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
  /// Returns the number of this thread's allocations since the thread started.
  static std::size_t total();
  std::size_t Start = total();
};

/// While an object exists, one allocation of this thread fails. \p After
/// allocations succeed before it.
class AllocationFailure {
public:
  explicit AllocationFailure(std::size_t After);
  ~AllocationFailure();
  AllocationFailure(const AllocationFailure &) = delete;
  AllocationFailure &operator=(const AllocationFailure &) = delete;

  /// True when that allocation has failed.
  bool hasHappened() const;
  /// False under sanitizers, because they replace the allocator.
  static bool isPossible();
};

/// Returns the number of allocations in ten calls of \p Round, after three
/// calls that are not counted.
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
