//===- PassRunner.h - Runs pipelines on a module ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PassRunner: LLVM's pass and analysis managers for one module. They run one
/// pipeline after another like `opt -passes=ONE,ANOTHER`: analyses are cached
/// for as long as they are valid.
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
  /// \p M and \p TM must outlive this object. \p Kind is that of histograms.
  PassRunner(llvm::Module &M, llvm::TargetMachine &TM, EmbeddingKind Kind,
             const RegisterInside &Register);
  PassRunner(const PassRunner &) = delete;
  PassRunner &operator=(const PassRunner &) = delete;

  /// InvalidArgument if LLVM cannot parse \p Pipeline. An empty one does
  /// nothing.
  Error run(llvm::StringRef Pipeline);
  /// Runs LLVM's own pipeline.
  void run(const StockPipeline &Stock);

  /// The histogram of the current module. Counts only functions that have
  /// changed since the last call.
  EntityHistogram histogram();

private:
  /// Provides a plug-in's inline advisor to an inliner without a wrapper, as in
  /// `cgscc(inline)`: only LLVM's wrapper of inliners looks for one.
  void provideAdvisor();

  llvm::Module &M;
  llvm::TargetMachine &TM;
  llvm::TargetLibraryInfoImpl LibraryInfo;
  llvm::PassInstrumentationCallbacks Callbacks;
  /// Skips functions that are marked `optnone`.
  llvm::OptNoneInstrumentation OptNone;
  llvm::PassBuilder Builder;
  // In this order, since their proxies depend on it.
  llvm::LoopAnalysisManager LAM;
  llvm::FunctionAnalysisManager FAM;
  llvm::CGSCCAnalysisManager CGAM;
  llvm::ModuleAnalysisManager MAM;
  bool MayInlineAlone = false;
  bool HasProvided = false;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PASSRUNNER_H
