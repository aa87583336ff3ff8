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

#include "RegAlloc/AllocationCost.h"

#include <algorithm>
#include <cmath>

namespace MLBridge {

/// Returns the logarithm of greedy's cost relative to \p Cost, from -1 to 1.
/// \p Cost is null if the allocation failed, which counts as the worst cost.
inline double allocationReward(double GreedyCost, const AllocationCost *Cost) {
  // The smallest cost is an instruction in a block that hardly runs.
  constexpr double Smallest = 1e-3;
  if (!Cost)
    return -1;
  const double Ratio = (GreedyCost + Smallest) / (Cost->total() + Smallest);
  return std::clamp(std::log(Ratio), -1.0, 1.0);
}

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ALLOCATIONREWARD_H
