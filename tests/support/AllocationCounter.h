//===- AllocationCounter.h - Counts heap allocations ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AllocationCounter counts the calling thread's heap allocations, by any
/// function, since its construction; it also works under sanitizers.
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
  /// Allocations of this thread since it started.
  static std::size_t total();
  std::size_t Start = total();
};

/// While this object exists, one allocation of this thread fails: the one after
/// \p After others.
class AllocationFailure {
public:
  explicit AllocationFailure(std::size_t After);
  ~AllocationFailure();
  AllocationFailure(const AllocationFailure &) = delete;
  AllocationFailure &operator=(const AllocationFailure &) = delete;

  /// True once that allocation has failed.
  bool hasHappened() const;
  /// False under sanitizers, which replace the allocator.
  static bool isPossible();
};

/// The number of allocations in ten calls of \p Round, after three to warm up.
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
