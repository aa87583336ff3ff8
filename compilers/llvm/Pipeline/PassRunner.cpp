//===- PassRunner.cpp - Runs pipelines on a module ------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Sets up LLVM's managers in the same way as clang and opt.
///
//===----------------------------------------------------------------------===//

#include "Pipeline/PassRunner.h"

#include "IR2Vec/ModuleEmbedder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/InlineAdvisor.h"
#include "llvm/Analysis/InlineCost.h"
#include "llvm/Analysis/ReplayInlineAdvisor.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/AddDiscriminators.h"

using namespace llvm;

namespace MLBridge {

/// Returns the tuning options that clang and lld use at \p Level.
static PipelineTuningOptions tuning(OptimizationLevel Level) {
  PipelineTuningOptions Options;
  Options.SLPVectorization = true;
  // At -Oz, vectorize only loops that are marked in the source.
  Options.LoopVectorization = Level != OptimizationLevel::Oz;
  return Options;
}

PassRunner::PassRunner(Module &M, TargetMachine &TM, EmbeddingKind Kind,
                       const RegisterInside &Register)
    : M(M), TM(TM), LibraryInfo(M.getTargetTriple()),
      OptNone(/*DebugLogging=*/false),
      Builder(&TM, tuning(OptimizationLevel::Oz), std::nullopt, &Callbacks) {
  OptNone.registerCallbacks(Callbacks);
  FAM.registerPass([this] { return TargetLibraryAnalysis(LibraryInfo); });
  FAM.registerPass([Kind, Kept = KeptHistograms::follow(Callbacks, FAM)] {
    return EntityHistogramAnalysis(Kind, Kept);
  });
  // Count functions again after InstCombine, which may change a function
  // without a report. Otherwise, a histogram that is updated after each action
  // could differ from a histogram that is computed once at the end.
  ModuleEmbedder::distrustInstCombine(Callbacks, FAM);
  if (Register)
    Register(Builder);
  Builder.registerModuleAnalyses(MAM);
  Builder.registerCGSCCAnalyses(CGAM);
  Builder.registerFunctionAnalyses(FAM);
  Builder.registerLoopAnalyses(LAM);
  Builder.crossRegisterProxies(LAM, FAM, CGAM, MAM);
  if (MAM.isPassRegistered<PluginInlineAdvisorAnalysis>())
    provideAdvisor();
}

/// LLVM's parser calls itself for each level, so a deep pipeline would overflow
/// the stack.
static constexpr unsigned MaxLevels = 100;

static bool isTooDeep(StringRef Pipeline) {
  unsigned Level = 0;
  return any_of(Pipeline, [&](char C) {
    Level += C == '(' ? 1 : 0;
    Level -= C == ')' && Level != 0 ? 1 : 0;
    return Level > MaxLevels;
  });
}

llvm::Error parsePipeline(PassBuilder &Builder, ModulePassManager &Passes,
                          StringRef Pipeline) {
  if (isTooDeep(Pipeline))
    return createStringError("expected at most " + Twine(MaxLevels) +
                             " levels");
  return Builder.parsePassPipeline(Passes, Pipeline);
}

Error PassRunner::run(StringRef Pipeline) {
  if (Pipeline.empty())
    return Error::success();
  ModulePassManager Passes;
  if (llvm::Error E = parsePipeline(Builder, Passes, Pipeline))
    return {ErrorCode::InvalidArgument,
            ("pipeline '" + Pipeline + "': " + toString(std::move(E))).str()};
  MayInlineAlone = Pipeline.contains("inline");
  Passes.run(M, MAM);
  MayInlineAlone = false;
  return Error::success();
}

/// The class name of the pass that runs the inliners along the call graph.
static constexpr StringLiteral Walk = "ModuleToPostOrderCGSCCPassAdaptor";

void PassRunner::provideAdvisor() {
  auto Drop = [this] {
    auto Preserved = PreservedAnalyses::all();
    Preserved.abandon<InlineAdvisorAnalysis>();
    MAM.invalidate(M, Preserved);
  };
  Callbacks.registerBeforeNonSkippedPassCallback(
      [this, Drop](StringRef Pass, const Any &) {
        if (Pass != Walk || !MayInlineAlone)
          return;
        auto &Advisors = MAM.getResult<InlineAdvisorAnalysis>(M);
        // If an advisor exists, the inliner runs inside LLVM's wrapper pass.
        if (Advisors.getAdvisor())
          return;
        HasProvided = Advisors.tryCreate(
            getInlineParams(), InliningAdvisorMode::Default, {},
            {ThinOrFullLTOPhase::None, InlinePass::CGSCCInliner});
        // tryCreate() has reported the error. The inliner continues without an
        // advisor.
        if (!HasProvided)
          Drop();
      });
  // Drop the advisor after the walk, because the advisor caches the call graph
  // and other passes change it.
  Callbacks.registerAfterPassCallback(
      [this, Drop](StringRef Pass, const Any &, const PreservedAnalyses &) {
        if (Pass == Walk && std::exchange(HasProvided, false))
          Drop();
      });
}

void PassRunner::run(const StockPipeline &Stock) {
  PassBuilder Stocked(&TM, tuning(Stock.Level), std::nullopt, &Callbacks);
  ModulePassManager Passes =
      Stock.Phase == ThinOrFullLTOPhase::ThinLTOPostLink
          // Pass no summary, because the passes that use a summary have already
          // run.
          ? Stocked.buildThinLTODefaultPipeline(Stock.Level, nullptr)
          : Stocked.buildPerModuleDefaultPipeline(Stock.Level);
  Passes.run(M, MAM);
}

void PassRunner::addDiscriminators() {
  ModulePassManager Passes;
  Passes.addPass(createModuleToFunctionPassAdaptor(AddDiscriminatorsPass()));
  Passes.run(M, MAM);
}

EntityHistogram PassRunner::histogram() {
  EntityHistogram Sum;
  for (Function &F : M)
    if (!F.isDeclaration())
      Sum += FAM.getResult<EntityHistogramAnalysis>(F);
  return Sum;
}

} // namespace MLBridge
