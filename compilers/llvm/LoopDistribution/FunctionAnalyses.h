//===- FunctionAnalyses.h - Computes the analyses of a function -*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FunctionAnalyses computes the analyses to which LoopAnalyses refers.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_FUNCTIONANALYSES_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_FUNCTIONANALYSES_H

#include "LoopDistribution/LoopAnalyses.h"

#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/DemandedBits.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/PassManager.h"

namespace MLBridge {

/// The references are valid as long as this object and the results in \p FAM.
/// The object has its own ScalarEvolution, because queries to LLVM's shared
/// ScalarEvolution would change the code that later passes generate.
class FunctionAnalyses {
public:
  FunctionAnalyses(llvm::Function &F, llvm::FunctionAnalysisManager &FAM)
      : SE(F, FAM.getResult<llvm::TargetLibraryAnalysis>(F),
           FAM.getResult<llvm::AssumptionAnalysis>(F),
           FAM.getResult<llvm::DominatorTreeAnalysis>(F),
           FAM.getResult<llvm::LoopAnalysis>(F)),
        Analyses{FAM.getResult<llvm::LoopAnalysis>(F),
                 FAM.getResult<llvm::DominatorTreeAnalysis>(F),
                 SE,
                 FAM.getResult<llvm::TargetIRAnalysis>(F),
                 FAM.getResult<llvm::TargetLibraryAnalysis>(F),
                 FAM.getResult<llvm::AAManager>(F),
                 FAM.getResult<llvm::AssumptionAnalysis>(F),
                 FAM.getResult<llvm::DemandedBitsAnalysis>(F),
                 FAM.getResult<llvm::OptimizationRemarkEmitterAnalysis>(F),
                 arrayBudgetOf(F)} {}

  const LoopAnalyses &operator*() const { return Analyses; }
  /// Reduces the budget by \p Bytes, the size of new arrays.
  void spendOnArrays(std::uint64_t Bytes) { Analyses.ArrayBudget -= Bytes; }

private:
  llvm::ScalarEvolution SE;
  LoopAnalyses Analyses;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_FUNCTIONANALYSES_H
