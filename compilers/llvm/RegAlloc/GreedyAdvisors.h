//===- GreedyAdvisors.h - Replaces greedy's advisors ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Replaces the advisors of LLVM's greedy allocator for each function. The
/// priority advisor decides which live range comes next. The eviction advisor
/// decides which ranges lose their register.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_GREEDYADVISORS_H
#define MLBRIDGE_LLVM_REGALLOC_GREEDYADVISORS_H

namespace MLBridge {

class AdvisorModel;

enum class EvictionBy {
  LLVM,
  /// Evicts from the register whose heaviest range has the lowest weight. The
  /// new range must be heavier than that range.
  Weight,
};

enum class PriorityBy {
  LLVM,
  Size, ///< The longest range first.
};

/// Greedy does not evict from a register unit with this number of live ranges
/// or more, so the advisors do not either.
inline constexpr unsigned MaxEvicted = 10;

struct GreedyAdvisors {
  EvictionBy Eviction = EvictionBy::LLVM;
  PriorityBy Priority = PriorityBy::LLVM;
  /// The models that decide instead, or null. They must stay valid while the
  /// function is allocated.
  AdvisorModel *EvictionModel = nullptr;
  AdvisorModel *PriorityModel = nullptr;
};

/// Sets the advisors of the function that this thread allocates next. The
/// choice is a thread-local variable, because LLVM creates the advisors without
/// a reference to the passes that choose them.
void setGreedyAdvisors(GreedyAdvisors Advisors);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_GREEDYADVISORS_H
