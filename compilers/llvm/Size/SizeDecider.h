//===- SizeDecider.h - Decides about code size ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `-mlbridge-size=decisions:FILE` replays a file of decisions, which
/// determines:
///
/// - which calls are inlined (InlineDecisions.h)
/// - which passes run, and from which functions code is outlined
///   (SizeDecisions.h)
///
/// LLVM decides about everything else. -mlbridge-inliner and
/// -mlbridge-phase-ordering, if given, take precedence. In LTO, the linker
/// generates the code. Only two kinds of decisions apply there: about inlining,
/// and about functions from which nothing is outlined.
///
/// With a model in place of the file, models decide about inlining and passes
/// (SizeOption.h). Code is outlined from functions that are compiled with -Os
/// or -Oz. In C++, functions with loops stay whole.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SIZE_SIZEDECIDER_H
#define MLBRIDGE_LLVM_SIZE_SIZEDECIDER_H

#include "MLCompilerBridge/Error.h"
#include "Pipeline/RegisterInside.h"
#include "Pipeline/StockPipeline.h"

#include <memory>
#include <string>
#include <vector>

namespace MLBridge {

/// Decides about the size of one module.
class SizeDecider {
public:
  /// Returns null unless -mlbridge-size was given.
  static std::shared_ptr<SizeDecider> fromOptions();
  virtual ~SizeDecider() = default;

  /// Makes a file decide about inlining in the pipelines that \p PB builds,
  /// unless another advisor has been registered.
  virtual void registerInlining(llvm::PassBuilder &PB);
  /// Runs a file's passes for \p M. Returns false if LLVM's own pipeline
  /// should run. If \p WhyNot is not empty, it is the reason why the pipeline
  /// must not be replaced. \p Register adds other optimisations to the passes.
  virtual bool runPasses(llvm::Module &M, const StockPipeline &Stock,
                         llvm::StringRef WhyNot,
                         const RegisterInside &Register);
  /// Applies the decisions about outlining to \p M. They may also set options
  /// of the code generator, which undoOutlining() resets.
  void outline(llvm::Module &M, llvm::ThinOrFullLTOPhase Phase);
  void undoOutlining();

private:
  /// Marks the functions of \p M that stay whole. Returns LLVM's
  /// -outliner-benefit-threshold, or 0 if the outliner does not run.
  virtual unsigned markWhole(llvm::Module &M) = 0;
  Error enableOutliner(unsigned Least);

  /// The options of LLVM that this object has set.
  std::vector<std::string> Options;
};

/// Does nothing unless -mlbridge-size was given. \p Register adds other
/// optimisations to the passes of a file.
void registerSizeDecider(llvm::PassBuilder &PB, RegisterInsideOf Register);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SIZE_SIZEDECIDER_H
