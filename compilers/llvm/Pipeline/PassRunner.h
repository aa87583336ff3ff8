//===- PassRunner.h - Runs pipelines on a module ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PassRunner runs pipelines on one module. It owns LLVM's pass and analysis
/// managers. Two calls of run() have the same effect as one run of `opt
/// -passes=ONE,ANOTHER`, because valid analyses stay cached between the calls.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PIPELINE_PASSRUNNER_H
#define MLBRIDGE_LLVM_PIPELINE_PASSRUNNER_H

#include "IR2Vec/EntityHistogram.h"
#include "Pipeline/RegisterInside.h"
#include "Pipeline/StockPipeline.h"

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

/// Adds \p Pipeline to \p Passes, as PassBuilder::parsePassPipeline() does.
/// Also returns an error for pipelines whose depth would overflow LLVM's stack.
llvm::Error parsePipeline(llvm::PassBuilder &Builder,
                          llvm::ModulePassManager &Passes,
                          llvm::StringRef Pipeline);

/// Only one thread at a time may use an object.
class PassRunner {
public:
  /// \p M and \p TM must outlive this object. \p Kind is the kind of histogram
  /// that histogram() returns. \p Register adds other optimisations to the
  /// pipelines, unless it is empty.
  PassRunner(llvm::Module &M, llvm::TargetMachine &TM, EmbeddingKind Kind,
             const RegisterInside &Register);
  PassRunner(const PassRunner &) = delete;
  PassRunner &operator=(const PassRunner &) = delete;

  /// Runs \p Pipeline. An empty pipeline does nothing. Returns InvalidArgument
  /// if LLVM cannot parse \p Pipeline.
  Error run(llvm::StringRef Pipeline);
  void run(const StockPipeline &Stock);
  /// Adds discriminators to the locations, as clang does with
  /// -fdebug-info-for-profiling.
  void addDiscriminators();

  /// Returns the histogram of the current module. Only functions that have
  /// changed since the last call are counted again.
  EntityHistogram histogram();

private:
  /// Provides the plug-in's inline advisor to inliners that run without LLVM's
  /// wrapper pass, as in `cgscc(inline)`. This is necessary because only the
  /// wrapper pass creates an advisor.
  void provideAdvisor();

  llvm::Module &M;
  llvm::TargetMachine &TM;
  llvm::TargetLibraryInfoImpl LibraryInfo;
  llvm::PassInstrumentationCallbacks Callbacks;
  /// Skips functions that are marked `optnone`.
  llvm::OptNoneInstrumentation OptNone;
  llvm::PassBuilder Builder;
  // These members must keep their order, because their proxies refer to each
  // other during destruction.
  llvm::LoopAnalysisManager LAM;
  llvm::FunctionAnalysisManager FAM;
  llvm::CGSCCAnalysisManager CGAM;
  llvm::ModuleAnalysisManager MAM;
  bool MayInlineAlone = false;
  bool HasProvided = false;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PIPELINE_PASSRUNNER_H
