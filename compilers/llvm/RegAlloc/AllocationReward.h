//===- AllocationReward.h - The reward of an allocation ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the reward with which a trainer learns to allocate registers.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_ALLOCATIONREWARD_H
#define MLBRIDGE_LLVM_REGALLOC_ALLOCATIONREWARD_H

#include <algorithm>
#include <cmath>
#include <optional>

namespace MLBridge {

/// The measure that a trainer minimizes.
enum class AllocationMeasure {
  Cost,  ///< AllocationCost::total().
  Cycles ///< cyclesOfFunction().
};

/// Returns log(\p Greedy / \p Found), limited to the range from -1 to 1. If the
/// allocation failed, \p Found is empty and the reward is -1.
inline double allocationReward(double Greedy, std::optional<double> Found) {
  // Add this number to both costs, because a cost can be 0.
  constexpr double Smallest = 1e-3;
  if (!Found)
    return -1;
  const double Ratio = (Greedy + Smallest) / (*Found + Smallest);
  return std::clamp(std::log(Ratio), -1.0, 1.0);
}

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ALLOCATIONREWARD_H
