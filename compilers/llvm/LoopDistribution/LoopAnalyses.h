//===- LoopAnalyses.h - The analyses of a function's loops ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// LoopAnalyses holds references to LLVM's analyses of a function, which all
/// parts of loop distribution use.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPANALYSES_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPANALYSES_H

namespace llvm {
class AAResults;
class AssumptionCache;
class DemandedBits;
class DominatorTree;
class LoopInfo;
class OptimizationRemarkEmitter;
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
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPANALYSES_H
