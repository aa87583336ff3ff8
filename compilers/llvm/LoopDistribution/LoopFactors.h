//===- LoopFactors.h - Factors of vectorizing and unrolling -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The factors by which a loop is vectorized, interleaved and unrolled. They
/// are metadata of the loop, which LLVM's passes read.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPFACTORS_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPFACTORS_H

#include "LoopDistribution/DependenceGraph.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace llvm {
class Loop;
} // namespace llvm

namespace MLBridge {

/// A factor of 0 means that LLVM decides.
struct LoopFactors {
  std::int32_t Width = 0, Interleave = 0, Unroll = 0;

  /// True if LLVM decides everything.
  bool areDefault() const { return !Width && !Interleave && !Unroll; }
};

/// The choices of a model. The first choice leaves all factors to LLVM.
llvm::ArrayRef<LoopFactors> factorChoices();

/// Returns a number for each of factorChoices(): 1 if the choice is legal for
/// the loop, and otherwise 0. The first choice is always legal. A choice is
/// illegal if LLVM would not obey it, or if it would reorder floating-point
/// operations whose order must not change. The function does not change the
/// loop.
std::vector<float> legalFactors(const DependenceGraph &Graph,
                                const LoopAnalyses &Analyses);

/// Sets the metadata of \p L, which must have no factors yet.
void setFactors(llvm::Loop &L, LoopFactors Factors);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPFACTORS_H
