//===- LoopDistributor.h - Distributes a loop -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The transformation of loop distribution.
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
  /// A copy of the original loop, which is executed if checks at run time fail,
  /// or null if there are no checks.
  llvm::Loop *Fallback = nullptr;
};

/// Distributes a loop. \p Plan must not be trivial. It and its graph are
/// invalid afterwards. LoopInfo, the dominator tree and ScalarEvolution stay
/// valid; LoopAccessAnalysis does not.
DistributedLoops distribute(const DistributionPlan &Plan,
                            const LoopAnalyses &Analyses);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPDISTRIBUTOR_H
