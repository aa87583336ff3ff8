//===- VectorCosts.h - The costs of vector instructions ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Estimates what the instructions of a loop cost after vectorization. LLVM's
/// vectorizer has such a model, but does not publish it.
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

/// Returns the estimated cycles of an iteration of \p Node if it is a
/// recurrence that the loop's branches do not need, or 0.
double recurrenceLatencyOf(const DependenceGraph::Node &Node,
                           const LoopAnalyses &Analyses);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_VECTORCOSTS_H
