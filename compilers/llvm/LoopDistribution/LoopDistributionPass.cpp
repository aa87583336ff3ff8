//===- LoopDistributionPass.cpp - Learned decisions about loops -----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs a policy over the innermost loops of a function.
///
//===----------------------------------------------------------------------===//

#include "LoopDistribution/LoopDistributionPass.h"

#include "LoopDistribution/DistributionCandidates.h"
#include "LoopDistribution/DistributionPlan.h"
#include "LoopDistribution/FactorCandidates.h"
#include "LoopDistribution/LoopDistributor.h"
#include "LoopDistribution/LoopObservation.h"
#include "LoopDistribution/LoopOptions.h"
#include "LoopDistribution/LoopPolicy.h"
#include "ModelSession.h"
#include "Options.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/DemandedBits.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/OptimizationLevel.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Transforms/Utils/LCSSA.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"

#include <memory>

using namespace llvm;

namespace MLBridge {

static constexpr char PassName[] = "mlbridge-loop-distribution";
static constexpr char FactorsPass[] = "mlbridge-loop-factors";

static SmallVector<Loop *, 8> innermostLoops(LoopInfo &LI) {
  SmallVector<Loop *, 8> Result;
  for (Loop *L : LI.getLoopsInPreorder())
    if (L->isInnermost() && !isDecided(*L))
      Result.push_back(L);
  return Result;
}

namespace {

/// The analyses of a function. ScalarEvolution is the pass's own, because
/// questions to LLVM's shared one change which code later passes make.
class FunctionAnalyses {
public:
  FunctionAnalyses(Function &F, FunctionAnalysisManager &FAM)
      : SE(F, FAM.getResult<TargetLibraryAnalysis>(F),
           FAM.getResult<AssumptionAnalysis>(F),
           FAM.getResult<DominatorTreeAnalysis>(F),
           FAM.getResult<LoopAnalysis>(F)),
        Analyses{FAM.getResult<LoopAnalysis>(F),
                 FAM.getResult<DominatorTreeAnalysis>(F),
                 SE,
                 FAM.getResult<TargetIRAnalysis>(F),
                 FAM.getResult<TargetLibraryAnalysis>(F),
                 FAM.getResult<AAManager>(F),
                 FAM.getResult<AssumptionAnalysis>(F),
                 FAM.getResult<DemandedBitsAnalysis>(F),
                 FAM.getResult<OptimizationRemarkEmitterAnalysis>(F)} {}

  const LoopAnalyses &operator*() const { return Analyses; }

private:
  ScalarEvolution SE;
  LoopAnalyses Analyses;
};

/// The policy of the module that the pass runs on. The passes of a pipeline
/// share it.
class PolicyOfModule {
public:
  /// What has happened in the module.
  struct Counts {
    std::uint64_t Loops = 0, Declined = 0, Partitions = 0, Distributed = 0,
                  Illegal = 0, FactorDecisions = 0, FactorsSet = 0;
  };

  explicit PolicyOfModule(LoopOptions Options) : Options(std::move(Options)) {}
  ~PolicyOfModule() { finish(); }

  /// Returns the policy for \p M, or null.
  LoopPolicy *get(Module &M) {
    if (Of != &M) {
      finish();
      Of = &M;
      Name = M.getModuleIdentifier();
      Policy = makeLoopPolicy(Options, M);
    }
    return Policy.get();
  }
  /// Ends the policy. The next get() makes another one.
  void finish() {
    if (!Policy)
      return;
    Policy->flush();
    Policy.reset();
    Of = nullptr;
    if (printStatistics())
      printLine(formatv(
          "mlbridge-loops: {0}: {1} loops, {2} declined; {3} partitions: {4} "
          "distributed, {5} illegal; {6} factors: {7} set",
          Name, Count.Loops, Count.Declined, Count.Partitions,
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
  std::string Name;
  std::unique_ptr<LoopPolicy> Policy;
};

class LoopDistributionPass : public PassInfoMixin<LoopDistributionPass> {
public:
  explicit LoopDistributionPass(std::shared_ptr<PolicyOfModule> Shared)
      : Shared(std::move(Shared)) {}

  PreservedAnalyses run(Function &F, FunctionAnalysisManager &FAM) {
    if (FAM.getResult<LoopAnalysis>(F).empty() || F.hasOptSize())
      return PreservedAnalyses::all();
    LoopPolicy *Policy = Shared->get(*F.getParent());
    if (!Policy)
      return PreservedAnalyses::all();
    const FunctionAnalyses Own(F, FAM);
    const LoopAnalyses &Analyses = *Own;
    bool HasChanged = false;
    for (Loop *L : innermostLoops(Analyses.LI)) {
      Expected<DependenceGraph> Graph = DependenceGraph::build(*L, Analyses);
      ++Shared->counts().Loops;
      if (!Graph) {
        ++Shared->counts().Declined;
        explain(*L, Analyses, PassName, "NotAnalyzed", Graph.takeError());
        continue;
      }
      std::optional<DistributedLoops> Distributed;
      if (Shared->options().distributes() && Graph->seeds().size() > 1)
        Distributed = distributeLoop(*Graph, Analyses, *Policy);
      const bool SetsFactors = Shared->options().setsFactors();
      if (!Distributed) {
        if (SetsFactors)
          chooseFactors(*Graph, Analyses, *Policy);
        continue;
      }
      HasChanged = true;
      if (Distributed->Fallback)
        markDecided(*Distributed->Fallback);
      for (Loop *Each : Distributed->Loops) {
        if (SetsFactors) {
          Expected<DependenceGraph> Part =
              DependenceGraph::build(*Each, Analyses);
          if (Part)
            chooseFactors(*Part, Analyses, *Policy);
          else
            explain(*Each, Analyses, FactorsPass, "NotAnalyzed",
                    Part.takeError());
        }
        markDecided(*Each);
      }
    }
    // Factors are metadata, which no analysis depends on.
    if (!HasChanged)
      return PreservedAnalyses::all();
    PreservedAnalyses Preserved;
    Preserved.preserve<LoopAnalysis>();
    Preserved.preserve<DominatorTreeAnalysis>();
    return Preserved;
  }

private:
  static void explain(const Loop &L, const LoopAnalyses &Analyses,
                      const char *Pass, StringRef Name, const Error &Why) {
    Analyses.ORE.emit([&] {
      return OptimizationRemarkMissed(Pass, Name, L.getStartLoc(),
                                      L.getHeader())
             << "loop left as it is: " << Why.message();
    });
  }

  std::optional<DistributedLoops> distributeLoop(const DependenceGraph &Graph,
                                                 const LoopAnalyses &Analyses,
                                                 LoopPolicy &Policy) {
    const auto Partition = Policy.partition(Graph, Analyses);
    if (!Partition)
      return std::nullopt;
    ++Shared->counts().Partitions;
    Loop &L = Graph.loop();
    Expected<DistributionPlan> Plan =
        DistributionPlan::make(Graph, *Partition, Analyses);
    if (!Plan) {
      ++Shared->counts().Illegal;
      explain(L, Analyses, PassName, "Illegal", Plan.takeError());
      return std::nullopt;
    }
    if (Plan->isTrivial())
      return std::nullopt;
    Analyses.ORE.emit([&] {
      return OptimizationRemark(PassName, "Distributed", L.getStartLoc(),
                                L.getHeader())
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
    if (!allows(Legal, *Choice)) {
      Error Why(ErrorCode::Model, "expected factors below " +
                                      std::to_string(Legal.size()) +
                                      " that action_mask allows, found " +
                                      std::to_string(*Choice));
      explain(L, Analyses, FactorsPass, "Illegal", Why);
      Policy.refuseFactors(Why);
      return;
    }
    const LoopFactors Factors = factorChoices()[std::size_t(*Choice)];
    if (Factors.areDefault())
      return;
    Analyses.ORE.emit([&] {
      return OptimizationRemark(FactorsPass, "Factors", L.getStartLoc(),
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

  std::shared_ptr<PolicyOfModule> Shared;
};

/// Ends the policy before the module is written, so that an error of a log
/// still fails the compile.
class FinishPass : public PassInfoMixin<FinishPass> {
public:
  explicit FinishPass(std::shared_ptr<PolicyOfModule> Shared)
      : Shared(std::move(Shared)) {}
  PreservedAnalyses run(Module &, ModuleAnalysisManager &) {
    Shared->finish();
    return PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }

private:
  std::shared_ptr<PolicyOfModule> Shared;
};

/// Prints what a model would see of each loop.
class PrinterPass : public PassInfoMixin<PrinterPass> {
public:
  PreservedAnalyses run(Function &F, FunctionAnalysisManager &FAM) {
    const FunctionAnalyses Own(F, FAM);
    const LoopAnalyses &Analyses = *Own;
    for (Loop *L : innermostLoops(Analyses.LI)) {
      json::Object Line{{"function", json::fixUTF8(F.getName())},
                        {"header", json::fixUTF8(L->getHeader()->getName())}};
      Expected<DependenceGraph> Graph = DependenceGraph::build(*L, Analyses);
      if (Graph)
        describe(*Graph, Analyses, Line);
      else
        Line["declined"] = json::fixUTF8(Graph.takeError().message());
      std::string Text;
      raw_string_ostream(Text) << json::Value(std::move(Line));
      printLine(Text);
    }
    return PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }

private:
  static void describe(const DependenceGraph &Graph,
                       const LoopAnalyses &Analyses, json::Object &Into) {
    FeatureSet Features;
    const LoopObservation Observation(Graph, Analyses, nullptr);
    const DistributionCandidates Candidates(Graph, Analyses);
    Observation.setFeatures(Features);
    Candidates.setFeatures(Features);
    const std::vector<float> Legal = legalFactors(Graph, Analyses);
    const FactorCandidates Factors(Graph, Analyses, Legal);
    Factors.setFeatures(Features);
    for (const TensorView &Tensor : Features.tensors())
      Into[std::string(Tensor.Name)] = rows(Tensor);
  }

  /// Returns a tensor of float or int32 as nested arrays.
  static json::Value rows(const TensorView &Tensor) {
    if (const auto Floats = Tensor.as<float>())
      return rows(*Floats, Tensor.Dims);
    if (const auto Integers = Tensor.as<std::int32_t>())
      return rows(*Integers, Tensor.Dims);
    return nullptr;
  }
  template <typename T>
  static json::Value rows(Span<const T> Elements, const Shape &Dims) {
    if (Dims.rank() < 2)
      return json::Array(Elements);
    json::Array Result;
    const auto Width = std::size_t(Dims[1]);
    for (std::size_t Begin = 0; Begin < Elements.size(); Begin += Width)
      Result.push_back(json::Array(ArrayRef(Elements.data() + Begin, Width)));
    return Result;
  }
};

} // namespace

void registerLoopDistribution(PassBuilder &PB) {
  const LoopOptions Options = loopOptions();
  const auto Shared = std::make_shared<PolicyOfModule>(Options);
  PB.registerPipelineParsingCallback(
      [Shared](StringRef Name, FunctionPassManager &FPM,
               ArrayRef<PassBuilder::PipelineElement>) {
        if (Name == PassName)
          FPM.addPass(LoopDistributionPass(Shared));
        else if (Name == "print<mlbridge-loop-distribution>")
          FPM.addPass(PrinterPass());
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
        // LLVM brings loops into this form next. At this point, their
        // preheaders are often missing.
        FPM.addPass(LoopSimplifyPass());
        FPM.addPass(LCSSAPass());
        if (Shared->options().Print)
          FPM.addPass(PrinterPass());
        FPM.addPass(LoopDistributionPass(Shared));
      });
  PB.registerOptimizerLastEPCallback(
      [Shared](ModulePassManager &MPM, OptimizationLevel, ThinOrFullLTOPhase) {
        MPM.addPass(FinishPass(Shared));
      });
}

} // namespace MLBridge
