//===- LoopDistributionPass.cpp - Learned decisions about loops -----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Applies a policy's decisions to the innermost loops of a function.
///
//===----------------------------------------------------------------------===//

#include "LoopDistribution/LoopDistributionPass.h"

#include "LoopDistribution/DecidedLoops.h"
#include "LoopDistribution/DistributionPlan.h"
#include "LoopDistribution/FunctionAnalyses.h"
#include "LoopDistribution/LoopDistributor.h"
#include "LoopDistribution/LoopFactors.h"
#include "LoopDistribution/LoopOptions.h"
#include "LoopDistribution/LoopPolicy.h"
#include "LoopDistribution/LoopPrinterPass.h"
#include "Support/ModelSession.h"
#include "Support/Options.h"

#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/OptimizationLevel.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Transforms/Utils/LCSSA.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"

#include <memory>

using namespace llvm;

namespace MLBridge {

namespace {

/// The policy for one module. The passes of a pipeline share it.
class ModulePolicy {
public:
  /// The counts for the statistics of the module.
  struct Counts {
    std::uint64_t Loops = 0, Declined = 0, Partitions = 0, Distributed = 0,
                  Illegal = 0, FactorDecisions = 0, FactorsSet = 0;
  };

  explicit ModulePolicy(LoopOptions Options) : Options(std::move(Options)) {}
  ~ModulePolicy() { finish(); }

  /// Returns the policy for \p M, or null if \p M has no policy.
  LoopPolicy *get(Module &M) {
    if (Of != &M) {
      finish();
      Of = &M;
      Prefix = ModelSession::prefix("mlbridge-loops", M);
      Policy = makeLoopPolicy(Options, M);
    }
    return Policy.get();
  }
  /// Flushes and destroys the policy. The next get() creates a new policy.
  void finish() {
    if (!Policy)
      return;
    Policy->flush();
    Policy.reset();
    Of = nullptr;
    if (printStatistics())
      printLine(formatv("{0}{1} loops, {2} declined; {3} partitions: {4} "
                        "distributed, {5} illegal; {6} factors: {7} set",
                        Prefix, Count.Loops, Count.Declined, Count.Partitions,
                        Count.Distributed, Count.Illegal, Count.FactorDecisions,
                        Count.FactorsSet));
    Count = {};
  }
  const LoopOptions &options() const { return Options; }
  Counts &counts() { return Count; }

private:
  const LoopOptions Options;
  Counts Count;
  const Module *Of = nullptr;
  std::string Prefix;
  std::unique_ptr<LoopPolicy> Policy;
};

class LoopDistributionPass : public PassInfoMixin<LoopDistributionPass> {
public:
  explicit LoopDistributionPass(std::shared_ptr<ModulePolicy> Shared)
      : Shared(std::move(Shared)) {}

  PreservedAnalyses run(Function &F, FunctionAnalysisManager &FAM) {
    if (FAM.getResult<LoopAnalysis>(F).empty() || F.hasOptSize())
      return PreservedAnalyses::all();
    LoopPolicy *Policy = Shared->get(*F.getParent());
    if (!Policy)
      return PreservedAnalyses::all();
    FunctionAnalyses Own(F, FAM);
    const LoopAnalyses &Analyses = *Own;
    bool HasChanged = false;
    for (Loop *L : undecidedLoops(Analyses.LI)) {
      Expected<DependenceGraph> Graph = DependenceGraph::build(*L, Analyses);
      ++Shared->counts().Loops;
      if (!Graph) {
        ++Shared->counts().Declined;
        explain<Missed>(*L, Analyses, LoopDistributionName, "NotAnalyzed",
                        Graph.takeError().message());
        continue;
      }
      std::optional<DistributedLoops> Distributed;
      if (Shared->options().distributes())
        Distributed = distributeLoop(*Graph, Analyses, *Policy);
      const bool SetsFactors = Shared->options().setsFactors();
      if (!Distributed) {
        if (SetsFactors)
          chooseFactors(*Graph, Analyses, *Policy);
        continue;
      }
      HasChanged = true;
      Own.spendOnArrays(Distributed->ArraySize);
      if (Distributed->Fallback)
        markDecided(*Distributed->Fallback);
      for (Loop *Each : Distributed->Loops) {
        if (SetsFactors) {
          Expected<DependenceGraph> Part =
              DependenceGraph::build(*Each, Analyses);
          if (Part)
            chooseFactors(*Part, Analyses, *Policy);
          else
            explain<Missed>(*Each, Analyses, LoopFactorsName, "NotAnalyzed",
                            Part.takeError().message());
        }
        markDecided(*Each);
      }
    }
    // New factors change no analysis, because factors are metadata.
    if (!HasChanged)
      return PreservedAnalyses::all();
    PreservedAnalyses Preserved;
    Preserved.preserve<LoopAnalysis>();
    Preserved.preserve<DominatorTreeAnalysis>();
    return Preserved;
  }

private:
  using Missed = OptimizationRemarkMissed;
  using Analysis = OptimizationRemarkAnalysis;

  template <typename Remark>
  static void explain(const Loop &L, const LoopAnalyses &Analyses,
                      const char *Pass, StringRef Name, StringRef Why) {
    Analyses.ORE.emit([&] {
      return Remark(Pass, Name, L.getStartLoc(), L.getHeader())
             << "loop left as it is: " << Why;
    });
  }

  std::optional<DistributedLoops> distributeLoop(const DependenceGraph &Graph,
                                                 const LoopAnalyses &Analyses,
                                                 LoopPolicy &Policy) {
    Loop &L = Graph.loop();
    if (Graph.seeds().size() < 2) {
      explain<Analysis>(L, Analyses, LoopDistributionName, "OnePart",
                        "it has no two parts that could be separate loops");
      return std::nullopt;
    }
    const auto Partition = Policy.partition(Graph, Analyses);
    if (!Partition)
      return std::nullopt;
    ++Shared->counts().Partitions;
    Expected<DistributionPlan> Plan =
        DistributionPlan::make(Graph, *Partition, Analyses);
    if (!Plan) {
      ++Shared->counts().Illegal;
      explain<Missed>(L, Analyses, LoopDistributionName, "Illegal",
                      Plan.takeError().message());
      return std::nullopt;
    }
    if (Plan->isTrivial()) {
      explain<Analysis>(L, Analyses, LoopDistributionName, "NotChosen",
                        "the model chose not to distribute it");
      return std::nullopt;
    }
    Analyses.ORE.emit([&] {
      return OptimizationRemark(LoopDistributionName, "Distributed",
                                L.getStartLoc(), L.getHeader())
             << "distributed the loop into "
             << ore::NV("Loops", Plan->loops().size()) << " loops";
    });
    ++Shared->counts().Distributed;
    return distribute(*Plan, Analyses);
  }

  void chooseFactors(const DependenceGraph &Graph, const LoopAnalyses &Analyses,
                     LoopPolicy &Policy) {
    Loop &L = Graph.loop();
    const std::vector<float> Legal = legalFactors(Graph, Analyses);
    const auto Choice = Policy.factors(Graph, Analyses, Legal);
    if (!Choice)
      return;
    ++Shared->counts().FactorDecisions;
    if (Error E = checkChoice("factors", Legal, *Choice)) {
      explain<Missed>(L, Analyses, LoopFactorsName, "Illegal", E.message());
      return;
    }
    const LoopFactors Factors = factorChoices()[std::size_t(*Choice)];
    if (Factors.areDefault()) {
      explain<Analysis>(L, Analyses, LoopFactorsName, "NotChosen",
                        "the model leaves its factors to LLVM");
      return;
    }
    Analyses.ORE.emit([&] {
      return OptimizationRemark(LoopFactorsName, "Factors", L.getStartLoc(),
                                L.getHeader())
             << "vectorization width " << ore::NV("Width", Factors.Width)
             << ", interleave count "
             << ore::NV("Interleave", Factors.Interleave) << ", unroll count "
             << ore::NV("Unroll", Factors.Unroll);
    });
    ++Shared->counts().FactorsSet;
    setFactors(L, Factors);
    markDecided(L);
  }

  std::shared_ptr<ModulePolicy> Shared;
};

/// Flushes the policy before the module is written, so that a failure to write
/// a log can still fail the compile.
class FinishPass : public PassInfoMixin<FinishPass> {
public:
  explicit FinishPass(std::shared_ptr<ModulePolicy> Shared)
      : Shared(std::move(Shared)) {}
  PreservedAnalyses run(Module &, ModuleAnalysisManager &) {
    Shared->finish();
    return PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }

private:
  std::shared_ptr<ModulePolicy> Shared;
};

} // namespace

void registerLoopDistribution(PassBuilder &PB) {
  const LoopOptions Options = loopOptions();
  const auto Shared = std::make_shared<ModulePolicy>(Options);
  PB.registerPipelineParsingCallback(
      [Shared](StringRef Name, FunctionPassManager &FPM,
               ArrayRef<PassBuilder::PipelineElement>) {
        if (Name == LoopDistributionName)
          FPM.addPass(LoopDistributionPass(Shared));
        else if (Name == "print<mlbridge-loop-distribution>")
          FPM.addPass(LoopPrinterPass());
        else
          return false;
        return true;
      });
  if (!Options.distributes() && !Options.setsFactors() && !Options.Print)
    return;
  PB.registerVectorizerStartEPCallback(
      [Shared](FunctionPassManager &FPM, OptimizationLevel Level) {
        if (Level.getSpeedupLevel() < 2 || Level.getSizeLevel() != 0)
          return;
        // Simplify loops, because LLVM's pipeline does so only after this point
        // and preheaders would often be missing.
        FPM.addPass(LoopSimplifyPass());
        FPM.addPass(LCSSAPass());
        if (Shared->options().Print)
          FPM.addPass(LoopPrinterPass());
        FPM.addPass(LoopDistributionPass(Shared));
      });
  PB.registerOptimizerLastEPCallback(
      [Shared](ModulePassManager &MPM, OptimizationLevel, ThinOrFullLTOPhase) {
        MPM.addPass(FinishPass(Shared));
      });
}

} // namespace MLBridge
