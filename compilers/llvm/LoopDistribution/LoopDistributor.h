//===- LoopDistributor.h - Distributes a loop -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Distributes a loop according to a DistributionPlan.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPDISTRIBUTOR_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPDISTRIBUTOR_H

#include "LoopDistribution/DistributionPlan.h"

#include "llvm/ADT/SmallVector.h"

namespace MLBridge {

struct DistributedLoops {
  /// The loops, in the order of their execution. The last one is the original
  /// loop.
  llvm::SmallVector<llvm::Loop *, 4> Loops;
  /// The copy of the original loop that runs if checks at run time fail. Null
  /// if there are no checks.
  llvm::Loop *Fallback = nullptr;
  /// The total size in bytes of the arrays that were added to the stack.
  std::uint64_t ArraySize = 0;
};

/// Distributes a loop. \p Plan must not be trivial. Afterwards, \p Plan, its
/// graph and LoopAccessAnalysis are invalid. LoopInfo, the dominator tree and
/// ScalarEvolution stay valid.
DistributedLoops distribute(const DistributionPlan &Plan,
                            const LoopAnalyses &Analyses);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPDISTRIBUTOR_H
