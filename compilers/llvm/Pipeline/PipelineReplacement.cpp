//===- PipelineReplacement.cpp - Replaces LLVM's pipelines ----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Adds a pass to LLVM's pipelines and skips the passes after it.
///
//===----------------------------------------------------------------------===//

#include "Pipeline/PipelineReplacement.h"

#include "Pipeline/Applicability.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/Passes/PassBuilder.h"

using namespace llvm;

namespace MLBridge {
namespace {

/// The state of the pipeline that a PassBuilder builds.
struct Pipeline {
  /// The reason why the pipeline must not be replaced, or empty if it can be
  /// replaced.
  StringRef WhyNot;
  /// The phase is only known when a callback sets it, after the first pass
  /// has been added to the pipeline.
  ThinOrFullLTOPhase Phase = ThinOrFullLTOPhase::None;
  /// True if LLVM's further passes are skipped.
  bool IsReplaced = false;
  /// The number of nested plug-in passes that are running. LLVM's passes inside
  /// a plug-in's pass are not skipped, because they belong to the plug-in.
  unsigned Added = 0;
};

/// A pass that replaces the rest of the pipeline in which it runs.
class ReplacingPass : public PassInfoMixin<ReplacingPass> {
public:
  ReplacingPass(OptimizationLevel Level, std::shared_ptr<Pipeline> Around,
                PipelineReplacement Replacement, StringRef WhyNot)
      : Level(Level), Around(std::move(Around)),
        Replacement(std::move(Replacement)), WhyNot(WhyNot) {}
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM) {
    // Check the functions' attributes, because the linker's optimisation level
    // does not show whether the module was compiled with -Os or -Oz.
    if (Around->Phase == ThinOrFullLTOPhase::ThinLTOPostLink &&
        !isMostlyForSize(M))
      return PreservedAnalyses::all();
    Around->IsReplaced = Replacement(M, MAM, {Level, Around->Phase}, WhyNot);
    // Preserve no analyses even after a failure, because a model that failed
    // late has changed the module.
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }

private:
  OptimizationLevel Level;
  std::shared_ptr<Pipeline> Around;
  PipelineReplacement Replacement;
  /// See PipelineReplacement.
  StringRef WhyNot;
};

} // namespace

/// True for optional passes of LLVM that must not be skipped. Later stages need
/// the passes of LTO and of instrumentation. Other passes in the list contain
/// further passes, which may be required. Adaptors are not in the list, because
/// LLVM marks them as required.
static bool isNeeded(StringRef Pass) {
  static constexpr StringLiteral Names[] = {
      "ModuleInlinerWrapperPass", "DevirtSCCRepeatedPass",
      "CanonicalizeAliasesPass",  "NameAnonGlobalPass",
      "LowerTypeTestsPass",       "EliminateAvailableExternallyPass",
      "GCOVProfilerPass",         "InstrProfilingLoweringPass",
  };
  return is_contained(Names, Pass);
}

/// True if a plug-in has added the pass class \p Pass. Passes of LLVM have a
/// name for -passes, which plug-in passes lack. Exceptions are passes of LLVM
/// that only run other passes or only handle an analysis.
static bool isAdded(PassInstrumentationCallbacks &Callbacks, StringRef Pass) {
  return Callbacks.getPassNameForClassName(Pass).empty() &&
         !isSpecialPass(Pass,
                        {"PassManager", "PassAdaptor", "InvalidateAnalysisPass",
                         "RequireAnalysisPass", "RepeatedPass"}) &&
         !isNeeded(Pass);
}

void replacePipelines(PassBuilder &PB, const PipelineReplacement &Replacement) {
  PassInstrumentationCallbacks *Callbacks =
      PB.getPassInstrumentationCallbacks();
  if (!Callbacks)
    return;
  auto Around = std::make_shared<Pipeline>();
  Around->WhyNot = whyNotReplaced(PB);
  Callbacks->registerShouldRunOptionalPassCallback(
      [=](StringRef Pass, const Any &) {
        return !Around->IsReplaced || Around->Added != 0 || isNeeded(Pass) ||
               isAdded(*Callbacks, Pass);
      });
  auto Begin = [=](StringRef Pass, const Any &) {
    Around->Added += isAdded(*Callbacks, Pass) ? 1 : 0;
  };
  auto End = [=](StringRef Pass) {
    Around->Added -= isAdded(*Callbacks, Pass) ? 1 : 0;
  };
  Callbacks->registerBeforeNonSkippedPassCallback(Begin);
  Callbacks->registerAfterPassCallback(
      [=](StringRef Pass, const Any &, const PreservedAnalyses &) {
        End(Pass);
      });
  Callbacks->registerAfterPassInvalidatedCallback(
      [=](StringRef Pass, const PreservedAnalyses &) { End(Pass); });
  PB.registerPipelineStartEPCallback(
      [=](ModulePassManager &Passes, OptimizationLevel Level) {
        if (Level == OptimizationLevel::O0)
          return;
        StringRef WhyNot = Around->WhyNot;
        if (WhyNot.empty() && !Level.isOptimizingForSize())
          WhyNot = "the last -O option is neither -Os nor -Oz";
        Passes.addPass(ReplacingPass(Level, Around, Replacement, WhyNot));
      });
  PB.registerPipelineEarlySimplificationEPCallback(
      [=](ModulePassManager &Passes, OptimizationLevel Level,
          ThinOrFullLTOPhase Phase) {
        Around->Phase = Phase;
        if (Phase == ThinOrFullLTOPhase::ThinLTOPostLink &&
            Level != OptimizationLevel::O0)
          Passes.addPass(
              ReplacingPass(Level, Around, Replacement, Around->WhyNot));
      });
}

} // namespace MLBridge
