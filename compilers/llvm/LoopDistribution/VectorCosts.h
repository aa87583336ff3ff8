//===- VectorCosts.h - The costs of vector instructions ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Estimates the cycles of a loop's instructions after vectorization. LLVM's
/// vectorizer has such a cost model, but it has no public interface.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_VECTORCOSTS_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_VECTORCOSTS_H

#include "LoopDistribution/DependenceGraph.h"

namespace MLBridge {

/// Returns the estimated cycles of \p Width iterations of \p I, an instruction
/// of the graph's loop. If \p Width is 1, these are the cycles of the scalar
/// instruction. Phis, branches and addresses cost nothing, because they usually
/// need no instruction of their own.
double vectorCyclesOf(const llvm::Instruction &I, unsigned Width,
                      const DependenceGraph &Graph,
                      const LoopAnalyses &Analyses);

/// Returns the estimated latency of \p Node in cycles per iteration. Returns 0
/// if \p Node is not a recurrence, or if the loop's branches need it.
double recurrenceLatencyOf(const DependenceGraph::Node &Node,
                           const LoopAnalyses &Analyses);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_VECTORCOSTS_H
