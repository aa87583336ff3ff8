//===- PassRunner.h - Runs pipelines on a module ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PassRunner: LLVM's pass and analysis managers for one module, which run one
/// pipeline after another as `opt -passes=ONE,ANOTHER` does: what was found out
/// of the module stays known for as long as it holds.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_PASSRUNNER_H
#define MLBRIDGE_LLVM_PHASEORDERING_PASSRUNNER_H

#include "IR2Vec/EntityHistogram.h"
#include "PhaseOrdering/RegisterInside.h"
#include "PhaseOrdering/StockPipeline.h"

#include "MLCompilerBridge/Error.h"

#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/StandardInstrumentations.h"

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace MLBridge {

/// Used by one thread at a time.
class PassRunner {
public:
  /// \p M and \p TM outlive it. \p Kind is that of the histograms.
  PassRunner(llvm::Module &M, llvm::TargetMachine &TM, EmbeddingKind Kind,
             const RegisterInside &Register);
  PassRunner(const PassRunner &) = delete;
  PassRunner &operator=(const PassRunner &) = delete;

  /// InvalidArgument where LLVM cannot read \p Pipeline; an empty one is none.
  Error run(llvm::StringRef Pipeline);
  /// What LLVM would run by itself.
  void run(const StockPipeline &Stock);

  /// The histogram of the module as it is. Only functions are counted that have
  /// changed since the last call.
  EntityHistogram histogram();

private:
  /// Makes a plug-in's inline advisor known to an inliner that stands alone, as
  /// in `cgscc(inline)`: only LLVM's wrapper of inliners looks for one.
  void provideAdvisor();

  llvm::Module &M;
  llvm::TargetMachine &TM;
  llvm::TargetLibraryInfoImpl LibraryInfo;
  llvm::PassInstrumentationCallbacks Callbacks;
  /// Leaves functions alone that are marked `optnone`.
  llvm::OptNoneInstrumentation OptNone;
  llvm::PassBuilder Builder;
  // In this order, which is that of their proxies.
  llvm::LoopAnalysisManager LAM;
  llvm::FunctionAnalysisManager FAM;
  llvm::CGSCCAnalysisManager CGAM;
  llvm::ModuleAnalysisManager MAM;
  bool MayInlineAlone = false;
  bool HasProvided = false;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PASSRUNNER_H
