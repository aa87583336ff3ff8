//===- Inliner.cpp - What is inlined, decided by a model ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The request is asked in ModelInlineAdvisor::getAdviceFromModel; the rest is
/// how an advisor comes to be in LLVM's pipelines.
///
//===----------------------------------------------------------------------===//

#include "Inliner/Inliner.h"

#include "Inliner/InlinerStatistics.h"
#include "ModelRunnerAdapter.h"
#include "ModelSession.h"
#include "Options.h"

#include "llvm/Analysis/IR2Vec.h"
#include "llvm/Analysis/InlineAdvisor.h"
#include "llvm/Analysis/InlineModelFeatureMaps.h"
#include "llvm/Analysis/MLInlineAdvisor.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"

using namespace llvm;

namespace MLBridge {
namespace {

//===----------------------------------------------------------------------===//
// The advisor
//===----------------------------------------------------------------------===//

/// What the inliner keeps for a module, from its first run to the last: LLVM
/// makes an advisor for each run.
struct InlinerState {
  InlinerState(std::unique_ptr<ModelSession> Session, const Module &M)
      : Session(std::move(Session)), Statistics(M.getModuleIdentifier()) {}
  InlinerState(const InlinerState &) = delete;
  InlinerState &operator=(const InlinerState &) = delete;
  ~InlinerState() {
    if (printStatistics())
      printLine(Statistics.str());
  }

  std::unique_ptr<ModelSession> Session;
  InlinerStatistics Statistics;
};

class ModelInlineAdvisor final : public MLInlineAdvisor {
public:
  ModelInlineAdvisor(Module &M, ModuleAnalysisManager &MAM,
                     FunctionAnalysisManager &FAM, const InlineParams &Params,
                     InlineContext IC, InlinerState &State);
  ~ModelInlineAdvisor() override;

  void onPassEntry(LazyCallGraph::SCC *SCC) override;
  void onPassExit(LazyCallGraph::SCC *SCC) override;

private:
  std::unique_ptr<MLInlineAdvice>
  getAdviceFromModel(CallBase &CB, OptimizationRemarkEmitter &ORE) override;
  std::unique_ptr<InlineAdvice> getAdviceImpl(CallBase &CB) override;
  std::unique_ptr<InlineAdvice> getMandatoryAdvice(CallBase &CB,
                                                   bool Advice) override;

  ModelRunnerAdapter &model() {
    return static_cast<ModelRunnerAdapter &>(*ModelRunner);
  }
  /// LLVM's own decision at this state.
  bool heuristicInlines(CallBase &CB);
  /// Whether \p CB calls the function it is in, and is not dead code.
  bool isSelfCall(CallBase &CB);
  /// Whether nothing is left for a model to decide, so that the stock advisor
  /// takes over and MLInlineAdvisor's bookkeeping ends: after a failure, and
  /// where the heuristic alone, having been deferred to each time, has run into
  /// the limit that is meant for models.
  bool heuristicTakesOver() const {
    return State.Session->hasFailed() || (isForcedToStop() && !ModelHasDecided);
  }

  InlinerState &State;
  DefaultInlineAdvisor Heuristic;
  /// The position of the feature `inlining_default`, if it is wanted.
  std::optional<std::size_t> DefaultFeature;
  bool ModelHasDecided = false;
};

} // namespace

/// The tensors of a request: LLVM's, and its decision where that is wanted.
/// (LLVM's own -inliner-interactive-include-default puts it there already.)
static std::vector<TensorSpec> inputsFor(std::vector<TensorSpec> FeatureMap) {
  if (inlinerIncludesDefault() &&
      FeatureMap.back().name() != DefaultDecisionName)
    FeatureMap.push_back(DefaultDecisionSpec);
  return FeatureMap;
}

ModelInlineAdvisor::ModelInlineAdvisor(Module &M, ModuleAnalysisManager &MAM,
                                       FunctionAnalysisManager &FAM,
                                       const InlineParams &Params,
                                       InlineContext IC, InlinerState &State)
    : MLInlineAdvisor(
          M, MAM,
          [&](const std::vector<TensorSpec> &FeatureMap) {
            return std::make_unique<ModelRunnerAdapter>(
                M.getContext(), State.Session->runner(), inputsFor(FeatureMap),
                InlineDecisionSpec,
                AnnotateInlinePassName(IC) + ":" + M.getModuleIdentifier());
          },
          [this](CallBase &CB) { return heuristicInlines(CB); }),
      State(State), Heuristic(M, FAM, Params, IC) {
  std::vector<TensorSpec> Inputs = inputsFor(getFeatureMap());
  if (Inputs.back().name() == DefaultDecisionName)
    DefaultFeature = Inputs.size() - 1;
}

/// LLVM destroys an advisor when the inliner has run, and the state of the
/// module only when the module has been written.
ModelInlineAdvisor::~ModelInlineAdvisor() { State.Session->flush(); }

bool ModelInlineAdvisor::heuristicInlines(CallBase &CB) {
  std::unique_ptr<InlineAdvice> Advice = Heuristic.getAdvice(CB);
  Advice->recordUnattemptedInlining();
  return Advice->isInliningRecommended();
}

std::unique_ptr<MLInlineAdvice>
ModelInlineAdvisor::getAdviceFromModel(CallBase &CB,
                                       OptimizationRemarkEmitter &ORE) {
  InlinerStatistics::Decision Made;
  if (DefaultFeature) {
    Made.Default = heuristicInlines(CB);
    *model().getTensor<int64_t>(*DefaultFeature) = *Made.Default;
  }

  InlinerStatistics::Stopwatch Clock;
  Expected<int64_t> Reply = model().tryEvaluate<int64_t>();
  Made.Time = Clock.elapsed();

  if (Reply) {
    ModelHasDecided = true;
    Made.Inline = *Reply != 0;
  } else {
    Made.Inline = Made.Default ? *Made.Default : heuristicInlines(CB);
  }
  Made.By = Reply.code();
  State.Statistics.add(Made);

  Error Failure =
      Made.By == ErrorCode::Success || Made.By == ErrorCode::Deferred
          ? model().logOutcome<int64_t>(Made.Inline)
          : Reply.takeError();
  if (Failure)
    State.Session->fail(Failure);
  return std::make_unique<MLInlineAdvice>(this, CB, ORE, Made.Inline);
}

std::unique_ptr<InlineAdvice> ModelInlineAdvisor::getAdviceImpl(CallBase &CB) {
  if (heuristicTakesOver())
    return Heuristic.getAdvice(CB);
  // MLInlineAdvisor never inlines a function into itself; the stock inliner
  // does, now and then. (MLInlineAdvice then counts the new calls twice, so
  // that the feature edge_count is a little high from here on.)
  if (isSelfCall(CB) && !isForcedToStop())
    return std::make_unique<MLInlineAdvice>(this, CB, getCallerORE(CB),
                                            heuristicInlines(CB));
  return MLInlineAdvisor::getAdviceImpl(CB);
}

bool ModelInlineAdvisor::isSelfCall(CallBase &CB) {
  // MLInlineAdvice cannot follow what happens in unreachable code.
  return CB.getCaller() == CB.getCalledFunction() &&
         FAM.getResult<DominatorTreeAnalysis>(*CB.getCaller())
             .isReachableFromEntry(CB.getParent());
}

std::unique_ptr<InlineAdvice>
ModelInlineAdvisor::getMandatoryAdvice(CallBase &CB, bool Advice) {
  return heuristicTakesOver() ? Heuristic.getAdvice(CB, /*MandatoryOnly=*/true)
                              : MLInlineAdvisor::getMandatoryAdvice(CB, Advice);
}

/// Once the heuristic has taken over, what it deletes is no longer recorded, so
/// the call graph nodes that MLInlineAdvisor remembers may be dead. Without an
/// SCC it looks at none of them.
void ModelInlineAdvisor::onPassEntry(LazyCallGraph::SCC *SCC) {
  MLInlineAdvisor::onPassEntry(heuristicTakesOver() ? nullptr : SCC);
}
void ModelInlineAdvisor::onPassExit(LazyCallGraph::SCC *SCC) {
  MLInlineAdvisor::onPassExit(heuristicTakesOver() ? nullptr : SCC);
}

//===----------------------------------------------------------------------===//
// Its way into the pipelines
//===----------------------------------------------------------------------===//

namespace {

/// The module and the analyses of a pass that runs passes of its own; none
/// where there is no such pass.
struct OuterPipeline {
  Module *M = nullptr;
  ModuleAnalysisManager *MAM = nullptr;
};

/// The inliner's state for a module: made once, never invalidated, shared by
/// all runs of the inliner in one pipeline, and in those inside it.
class InlinerStateAnalysis : public AnalysisInfoMixin<InlinerStateAnalysis> {
public:
  struct Result {
    /// Null after an error, which has been reported.
    std::shared_ptr<InlinerState> State;
    bool invalidate(Module &, const PreservedAnalyses &,
                    ModuleAnalysisManager::Invalidator &) {
      return false;
    }
  };

  explicit InlinerStateAnalysis(OuterPipeline Outer) : Outer(Outer) {}
  Result run(Module &M, ModuleAnalysisManager &) {
    if (Outer.M)
      return Outer.MAM->getResult<InlinerStateAnalysis>(*Outer.M);
    std::unique_ptr<ModelSession> Session =
        ModelSession::open("mlbridge-inliner", inlinerSpec(), M);
    if (!Session)
      return {};
    return {std::make_shared<InlinerState>(std::move(Session), M)};
  }

private:
  friend AnalysisInfoMixin<InlinerStateAnalysis>;
  static AnalysisKey Key;
  OuterPipeline Outer;
};

/// Leads from the function analyses to the module analyses beside them. LLVM
/// hands the former only to the factory of an advisor, a plain function pointer
/// that can bring nothing along.
class ModuleManagerAnalysis : public AnalysisInfoMixin<ModuleManagerAnalysis> {
public:
  struct Result {
    ModuleAnalysisManager &Manager;
    bool invalidate(Function &, const PreservedAnalyses &,
                    FunctionAnalysisManager::Invalidator &) {
      return false;
    }
  };

  /// \p Slot is filled when the pass builder registers the module analyses,
  /// which may be later than the function analyses.
  explicit ModuleManagerAnalysis(std::shared_ptr<ModuleAnalysisManager *> Slot)
      : Slot(std::move(Slot)) {}
  Result run(Function &, FunctionAnalysisManager &) { return {**Slot}; }

private:
  friend AnalysisInfoMixin<ModuleManagerAnalysis>;
  static AnalysisKey Key;
  std::shared_ptr<ModuleAnalysisManager *> Slot;
};
} // namespace

AnalysisKey InlinerStateAnalysis::Key;
AnalysisKey ModuleManagerAnalysis::Key;

/// Whether the user gave LLVM a vocabulary for embeddings.
static bool wantsEmbeddings() {
  const cl::Option *Vocabulary =
      cl::getRegisteredOptions().lookup("ir2vec-vocab-path");
  return Vocabulary && Vocabulary->getNumOccurrences() > 0;
}

/// The inliner's AdvisorFactory. Null means that the compile fails; why has
/// been reported.
static InlineAdvisor *createAdvisor(Module &M, FunctionAnalysisManager &FAM,
                                    InlineParams Params, InlineContext IC) {
  auto Defined =
      find_if(M, [](const Function &F) { return !F.isDeclaration(); });
  if (Defined == M.end())
    return std::make_unique<DefaultInlineAdvisor>(M, FAM, Params, IC).release();

  ModuleAnalysisManager &MAM =
      FAM.getResult<ModuleManagerAnalysis>(*Defined).Manager;
  // MLInlineAdvisor adds the embeddings when it finds the vocabulary here.
  if (wantsEmbeddings() && !MAM.getResult<IR2VecVocabAnalysis>(M).isValid())
    return nullptr;
  InlinerState *State = MAM.getResult<InlinerStateAnalysis>(M).State.get();
  if (!State)
    return nullptr;
  return std::make_unique<ModelInlineAdvisor>(M, MAM, FAM, Params, IC, *State)
      .release();
}

static void registerAdvisor(PassBuilder &PB, OuterPipeline Outer) {
  if (inlinerSpec().empty())
    return;
  auto Slot = std::make_shared<ModuleAnalysisManager *>(nullptr);
  PB.registerAnalysisRegistrationCallback([=](ModuleAnalysisManager &MAM) {
    *Slot = &MAM;
    MAM.registerPass([&] { return InlinerStateAnalysis(Outer); });
    MAM.registerPass([] { return PluginInlineAdvisorAnalysis(createAdvisor); });
  });
  PB.registerAnalysisRegistrationCallback([Slot](FunctionAnalysisManager &FAM) {
    FAM.registerPass([&] { return ModuleManagerAnalysis(Slot); });
  });
}

void registerInliner(PassBuilder &PB) { registerAdvisor(PB, {}); }

void registerInlinerInside(PassBuilder &Inner, Module &M,
                           ModuleAnalysisManager &Outer) {
  registerAdvisor(Inner, {&M, &Outer});
}

} // namespace MLBridge
