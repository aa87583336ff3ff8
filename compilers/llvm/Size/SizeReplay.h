//===- SizeReplay.h - Replays decisions about size --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// With `-mlbridge-size=decisions:FILE`, a file of decisions determines:
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
/// (SizeOption.h), and code is outlined from all functions that are compiled
/// with -Os or -Oz.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SIZE_SIZEREPLAY_H
#define MLBRIDGE_LLVM_SIZE_SIZEREPLAY_H

#include "Pipeline/RegisterInside.h"
#include "Pipeline/StockPipeline.h"
#include "Size/SizeDecisions.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace MLBridge {

class InlineAdvisorSource;

/// The decisions of a file, or those about outlining beside models.
class SizeReplay {
public:
  /// Returns null unless -mlbridge-size was given.
  static std::shared_ptr<SizeReplay> fromOptions();

  /// Makes the file decide about inlining in the pipelines that \p PB builds,
  /// unless another advisor has been registered.
  void registerInlining(llvm::PassBuilder &PB);
  /// Runs the file's passes for \p M. Returns false if LLVM's own pipeline
  /// should run. If \p WhyNot is not empty, it is the reason why the pipeline
  /// must not be replaced. \p Register adds other optimisations to the passes.
  bool runPasses(llvm::Module &M, const StockPipeline &Stock,
                 llvm::StringRef WhyNot, const RegisterInside &Register);
  /// Applies the decisions about outlining to \p M. They may also set options
  /// of the code generator, which undoOutlining() resets.
  void outline(llvm::Module &M, llvm::ThinOrFullLTOPhase Phase);
  void undoOutlining();

private:
  /// \p Given is the file. If it is empty, models decide.
  explicit SizeReplay(std::string Given);
  /// Returns null if the file cannot be read or has mistakes. The first call
  /// reads it and reports mistakes. The inliner reports a file that cannot be
  /// read.
  const SizeDecisions *decisions(llvm::Module &M);
  Error enableOutliner(unsigned Least);

  const std::string Path;
  /// Null if a model decides.
  const std::shared_ptr<InlineAdvisorSource> Inlining;
  bool HasRead = false;
  std::optional<SizeDecisions> Decisions;
  /// The options of LLVM that this object has set.
  std::vector<std::string> Options;
};

/// Does nothing unless -mlbridge-size was given. \p Register adds other
/// optimisations to the passes of a file.
void registerSizeReplay(llvm::PassBuilder &PB, RegisterInsideOf Register);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SIZE_SIZEREPLAY_H
