//===- LoopAnalyses.h - The analyses of a function's loops ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// LoopAnalyses holds references to LLVM's analyses of a function. All parts of
/// loop distribution use them, directly or through the queries below.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPANALYSES_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPANALYSES_H

#include "llvm/Support/InstructionCost.h"

#include <cstdint>

namespace llvm {
class AAResults;
class AllocaInst;
class AssumptionCache;
class BasicBlock;
class DemandedBits;
class DominatorTree;
class Function;
class Instruction;
class Loop;
class LoopInfo;
class OptimizationRemarkEmitter;
class PHINode;
class ScalarEvolution;
class TargetLibraryInfo;
class TargetTransformInfo;
} // namespace llvm

namespace MLBridge {

struct LoopAnalyses {
  llvm::LoopInfo &LI;
  llvm::DominatorTree &DT;
  llvm::ScalarEvolution &SE;
  llvm::TargetTransformInfo &TTI;
  llvm::TargetLibraryInfo &TLI;
  llvm::AAResults &AA;
  llvm::AssumptionCache &AC;
  llvm::DemandedBits &DB;
  llvm::OptimizationRemarkEmitter &ORE;
  /// The maximum total size in bytes of further arrays on the stack.
  std::uint64_t ArrayBudget;
};

/// Returns the maximum total size in bytes of the arrays that distributions may
/// still add to the stack of \p F. Arrays marked by markArray() reduce it.
std::uint64_t arrayBudgetOf(const llvm::Function &F);
/// Marks an array that a distribution has added. An earlier run of the pass,
/// for example before the link, or an inlined function can have added arrays.
void markArray(llvm::AllocaInst &Array);

/// The kinds of a phi in the header of a loop.
struct PhiKinds {
  bool IsInduction = false;
  /// True if the phi only passes on a value that an earlier iteration computed.
  bool IsFixedOrder = false;
  bool IsReduction = false;
  /// True for a floating-point reduction whose order must not change.
  bool IsOrdered = false;

  /// True for a reduction whose order may change.
  bool isFreeReduction() const { return IsReduction && !IsOrdered; }
};
PhiKinds kindsOf(llvm::PHINode &Phi, llvm::Loop &L,
                 const LoopAnalyses &Analyses);

/// Returns \p I if it is a phi in the header of \p L, and otherwise null.
llvm::PHINode *headerPhi(llvm::Instruction &I, const llvm::Loop &L);
/// True if \p I, an instruction of \p L, is used after the loop.
bool isUsedAfter(const llvm::Instruction &I, const llvm::Loop &L);
/// True if not every iteration of \p L executes \p Block.
bool isConditional(const llvm::BasicBlock &Block, const llvm::Loop &L,
                   const llvm::DominatorTree &DT);

/// These functions return LLVM's estimates of an instruction's reciprocal
/// throughput and latency in cycles, or 0 if they are unknown.
double cyclesOf(const llvm::Instruction &I, const LoopAnalyses &Analyses);
double latencyOf(const llvm::Instruction &I, const LoopAnalyses &Analyses);
/// Converts a cost of LLVM to cycles. Returns 0 if the cost is unknown.
double cyclesOf(llvm::InstructionCost Cost);

/// Returns the width of the target's vector registers in bits. Returns 0 if the
/// target has no vector registers.
std::uint64_t vectorRegisterBits(const LoopAnalyses &Analyses);
/// Returns the width of the target's widest registers in bits.
std::uint64_t registerBits(const LoopAnalyses &Analyses);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPANALYSES_H
