//===- Inliner.cpp - Lets a model decide what to inline -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelInlineAdvisor::getAdviceFromModel() sends the request. The second half
/// of the file adds the advisor to LLVM's pipelines.
///
//===----------------------------------------------------------------------===//

#include "Inliner/Inliner.h"

#include "Inliner/CallFeatures.h"
#include "Inliner/DecisionReplay.h"
#include "Inliner/InlineDecisions.h"
#include "Inliner/InlinerOptions.h"
#include "Inliner/InlinerStatistics.h"
#include "Support/ModelRunnerAdapter.h"
#include "Support/ModelSession.h"
#include "Support/Options.h"

#include "llvm/Analysis/IR2Vec.h"
#include "llvm/Analysis/InlineAdvisor.h"
#include "llvm/Analysis/InlineModelFeatureMaps.h"
#include "llvm/Analysis/MLInlineAdvisor.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"

using namespace llvm;

namespace MLBridge {
namespace {

//===----------------------------------------------------------------------===//
// The advisor
//===----------------------------------------------------------------------===//

/// A module's session with the model.
struct InlinerState final : InlineAdvisorSource {
  InlinerState(std::unique_ptr<ModelSession> Session, const Module &M)
      : Session(std::move(Session)),
        Statistics(withoutControls(M.getModuleIdentifier())) {}
  InlinerState(const InlinerState &) = delete;
  InlinerState &operator=(const InlinerState &) = delete;
  ~InlinerState() override {
    if (printStatistics())
      printLine(Statistics.str());
  }

  std::unique_ptr<InlineAdvisor> create(Module &M, ModuleAnalysisManager &MAM,
                                        FunctionAnalysisManager &FAM,
                                        const InlineParams &Params,
                                        InlineContext IC) override;

  std::unique_ptr<ModelSession> Session;
  InlinerStatistics Statistics;
  /// Makes the decisions about which the model defers. Null without
  /// `decisions:FILE`.
  std::unique_ptr<ReplayedModule> Replay;
  /// Makes the decisions in place of the model. Null if the model decides.
  CallDecider *Decider = nullptr;
  CalleeFiles Files;
};

/// Creates the InlinerState of a CallDecider when it is first needed.
class DecidedSource final : public InlineAdvisorSource {
public:
  DecidedSource(CallDecider &Decider, CalleeFiles Files)
      : Decider(Decider), Files(std::move(Files)) {}

  std::unique_ptr<InlineAdvisor> create(Module &M, ModuleAnalysisManager &MAM,
                                        FunctionAnalysisManager &FAM,
                                        const InlineParams &Params,
                                        InlineContext IC) override;

private:
  CallDecider &Decider;
  CalleeFiles Files;
  std::unique_ptr<InlinerState> State;
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
  /// Returns LLVM's own decision for \p CB in the current IR.
  bool heuristicInlines(CallBase &CB);
  /// Fills those features of a request that LLVM leaves empty. Returns LLVM's
  /// own decision if the request contains it, or if a CallDecider needs it.
  std::optional<bool> addFeatures(CallBase &CB);
  /// Requests the decision. \p Default is LLVM's own decision if it is known.
  Expected<int64_t> ask(CallBase &CB, std::optional<bool> Default);
  /// Returns the decision to use when the model makes none. \p Default is
  /// LLVM's own decision if it is known.
  bool decideWithoutModel(CallBase &CB, std::optional<bool> Default);
  /// True if \p CB calls the function that contains it, and the call is
  /// reachable.
  bool isSelfCall(CallBase &CB);
  /// True if the stock advisor makes all further decisions, without
  /// MLInlineAdvisor's bookkeeping. This is the case after a failure of the
  /// model. It is also the case if the model has always deferred and the size
  /// limit is reached, because the limit should not restrict the heuristic.
  bool heuristicTakesOver() const {
    return State.Session->hasFailed() || (isForcedToStop() && !ModelHasDecided);
  }

  InlinerState &State;
  DefaultInlineAdvisor Heuristic;
  /// The index of the feature `inlining_default`, if the request has it.
  std::optional<std::size_t> DefaultFeature;
  /// The index of the first feature of callFeatures(), if the request has them.
  std::optional<std::size_t> FirstCallFeature;
  bool ModelHasDecided = false;
};

} // namespace

static std::optional<std::size_t> indexOf(ArrayRef<TensorSpec> Tensors,
                                          StringRef Name) {
  const auto *Found = find_if(
      Tensors, [&](const TensorSpec &Spec) { return Spec.name() == Name; });
  if (Found == Tensors.end())
    return std::nullopt;
  return Found - Tensors.begin();
}

/// Returns the tensors of a request. They begin with LLVM's features. The
/// option -mlbridge-inliner-include-linkage adds the features of
/// callFeatures(). -mlbridge-inliner-include-default adds LLVM's decision,
/// unless LLVM's option -inliner-interactive-include-default has already added
/// it.
static std::vector<TensorSpec> inputsFor(std::vector<TensorSpec> FeatureMap) {
  if (inlinerIncludesLinkage())
    for (const char *Name : CallFeatureNames)
      FeatureMap.push_back(TensorSpec::createSpec<std::int64_t>(Name, {1}));
  if (inlinerIncludesDefault() && !indexOf(FeatureMap, DefaultDecisionName))
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
  const std::vector<TensorSpec> Inputs = inputsFor(getFeatureMap());
  DefaultFeature = indexOf(Inputs, DefaultDecisionName);
  FirstCallFeature = indexOf(Inputs, CallFeatureNames.front());
  if (State.Decider)
    State.Decider->beginRun(model().features());
  if (State.Replay)
    State.Replay->beginRun(M, IC);
}

/// The advisor flushes the log, because LLVM destroys the state only after
/// writing the module. An error would then be too late to prevent the output.
ModelInlineAdvisor::~ModelInlineAdvisor() { State.Session->flush(); }

bool ModelInlineAdvisor::heuristicInlines(CallBase &CB) {
  std::unique_ptr<InlineAdvice> Advice = Heuristic.getAdvice(CB);
  Advice->recordUnattemptedInlining();
  return Advice->isInliningRecommended();
}

std::optional<bool> ModelInlineAdvisor::addFeatures(CallBase &CB) {
  if (FirstCallFeature)
    for (const auto &[Index, Value] : enumerate(callFeatures(CB, State.Files)))
      *model().getTensor<int64_t>(*FirstCallFeature + Index) = Value;
  if (!DefaultFeature && !State.Decider)
    return std::nullopt;
  const bool Default = heuristicInlines(CB);
  if (DefaultFeature)
    *model().getTensor<int64_t>(*DefaultFeature) = Default;
  return Default;
}

Expected<int64_t> ModelInlineAdvisor::ask(CallBase &CB,
                                          std::optional<bool> Default) {
  if (!State.Decider)
    return model().tryEvaluate<int64_t>();
  if (const std::optional<bool> Inline =
          State.Decider->decide(CB, model().features(), *Default))
    return static_cast<int64_t>(*Inline);
  return Error::deferred("LLVM decides");
}

bool ModelInlineAdvisor::decideWithoutModel(CallBase &CB,
                                            std::optional<bool> Default) {
  if (State.Replay)
    if (const std::optional<bool> Given = State.Replay->decide(CB, FAM))
      return *Given;
  return Default ? *Default : heuristicInlines(CB);
}

std::unique_ptr<MLInlineAdvice>
ModelInlineAdvisor::getAdviceFromModel(CallBase &CB,
                                       OptimizationRemarkEmitter &ORE) {
  if (inlinerNamesCalls())
    model().switchContext(
        decisionKey(CB.getCalledFunction()->getName(), locationOf(CB)));
  InlinerStatistics::Decision Made;
  Made.Default = addFeatures(CB);

  InlinerStatistics::Stopwatch Clock;
  Expected<int64_t> Reply = ask(CB, Made.Default);
  Made.Time = Clock.elapsed();

  if (Reply) {
    ModelHasDecided = true;
    Made.Inline = *Reply != 0;
  } else {
    Made.Inline = decideWithoutModel(CB, Made.Default);
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
  if (State.Decider && State.Decider->excludes(CB))
    return std::make_unique<InlineAdvice>(this, CB, getCallerORE(CB), false);
  if (heuristicTakesOver())
    return Heuristic.getAdvice(CB);
  // Let the heuristic decide about recursive calls, because MLInlineAdvisor
  // never inlines a function into itself, whereas the stock inliner sometimes
  // does. As a side effect, MLInlineAdvice counts the new calls twice, so the
  // feature edge_count is slightly too high afterwards.
  if (isSelfCall(CB) && !isForcedToStop())
    return std::make_unique<MLInlineAdvice>(this, CB, getCallerORE(CB),
                                            heuristicInlines(CB));
  return MLInlineAdvisor::getAdviceImpl(CB);
}

bool ModelInlineAdvisor::isSelfCall(CallBase &CB) {
  // Exclude unreachable calls, because MLInlineAdvice cannot handle changes in
  // unreachable code.
  return CB.getCaller() == CB.getCalledFunction() &&
         FAM.getResult<DominatorTreeAnalysis>(*CB.getCaller())
             .isReachableFromEntry(CB.getParent());
}

std::unique_ptr<InlineAdvice>
ModelInlineAdvisor::getMandatoryAdvice(CallBase &CB, bool Advice) {
  return heuristicTakesOver() ? Heuristic.getAdvice(CB, /*MandatoryOnly=*/true)
                              : MLInlineAdvisor::getMandatoryAdvice(CB, Advice);
}

/// After the heuristic has taken over, deleted functions are no longer
/// recorded, so MLInlineAdvisor may have stored call graph nodes that no longer
/// exist. With a null SCC, MLInlineAdvisor does not use these nodes.
void ModelInlineAdvisor::onPassEntry(LazyCallGraph::SCC *SCC) {
  MLInlineAdvisor::onPassEntry(heuristicTakesOver() ? nullptr : SCC);
}
void ModelInlineAdvisor::onPassExit(LazyCallGraph::SCC *SCC) {
  MLInlineAdvisor::onPassExit(heuristicTakesOver() ? nullptr : SCC);
}

/// True if the command line contains LLVM's option -ir2vec-vocab-path.
static bool wantsEmbeddings() {
  const cl::Option *Vocabulary =
      cl::getRegisteredOptions().lookup("ir2vec-vocab-path");
  return Vocabulary && Vocabulary->getNumOccurrences() > 0;
}

std::unique_ptr<InlineAdvisor>
InlinerState::create(Module &M, ModuleAnalysisManager &MAM,
                     FunctionAnalysisManager &FAM, const InlineParams &Params,
                     InlineContext IC) {
  // Compute the vocabulary here, because MLInlineAdvisor adds embeddings only
  // if it finds a cached vocabulary.
  if (wantsEmbeddings() && !MAM.getResult<IR2VecVocabAnalysis>(M).isValid())
    return nullptr;
  return std::make_unique<ModelInlineAdvisor>(M, MAM, FAM, Params, IC, *this);
}

std::unique_ptr<InlineAdvisor>
DecidedSource::create(Module &M, ModuleAnalysisManager &MAM,
                      FunctionAnalysisManager &FAM, const InlineParams &Params,
                      InlineContext IC) {
  if (!State) {
    // If the CallDecider makes no decision, the spec `none` defers to LLVM.
    std::unique_ptr<ModelSession> Session =
        ModelSession::open("mlbridge-inliner", "none", M);
    if (!Session)
      return nullptr;
    State = std::make_unique<InlinerState>(std::move(Session), M);
    State->Decider = &Decider;
    State->Files = std::move(Files);
  }
  return State->create(M, MAM, FAM, Params, IC);
}

std::shared_ptr<InlineAdvisorSource> sourceOf(CallDecider &Decider,
                                              CalleeFiles Files) {
  return std::make_shared<DecidedSource>(Decider, std::move(Files));
}

//===----------------------------------------------------------------------===//
// Registration in pipelines
//===----------------------------------------------------------------------===//

namespace {

/// Opens the source of a module's inline advisors. Returns null if it has
/// emitted an error.
using OpenSource =
    std::function<std::shared_ptr<InlineAdvisorSource>(Module &)>;

/// Holds the source of a module's inline advisors. The source is created once
/// and never invalidated. All runs of the inliner in a pipeline and in its
/// inner pipelines share it.
class InlineAdvisorSourceAnalysis
    : public AnalysisInfoMixin<InlineAdvisorSourceAnalysis> {
public:
  struct Result {
    /// Null if the source could not be opened. The error has been reported.
    std::shared_ptr<InlineAdvisorSource> Source;
    bool invalidate(Module &, const PreservedAnalyses &,
                    ModuleAnalysisManager::Invalidator &) {
      return false;
    }
  };

  explicit InlineAdvisorSourceAnalysis(OpenSource Open)
      : Open(std::move(Open)) {}
  Result run(Module &M, ModuleAnalysisManager &) { return {Open(M)}; }

private:
  friend AnalysisInfoMixin<InlineAdvisorSourceAnalysis>;
  static AnalysisKey Key;
  OpenSource Open;
};

/// A function analysis whose result is the module analysis manager. The
/// advisor's factory needs that manager, but LLVM passes it only the function
/// analysis manager. The factory is a plain function pointer, so it cannot
/// capture the manager.
class ModuleManagerAnalysis : public AnalysisInfoMixin<ModuleManagerAnalysis> {
public:
  struct Result {
    ModuleAnalysisManager &Manager;
    bool invalidate(Function &, const PreservedAnalyses &,
                    FunctionAnalysisManager::Invalidator &) {
      return false;
    }
  };

  /// \p Slot points to the module analysis manager. The pass builder may set
  /// this pointer after it has constructed this object.
  explicit ModuleManagerAnalysis(std::shared_ptr<ModuleAnalysisManager *> Slot)
      : Slot(std::move(Slot)) {}
  Result run(Function &, FunctionAnalysisManager &) { return {**Slot}; }

private:
  friend AnalysisInfoMixin<ModuleManagerAnalysis>;
  static AnalysisKey Key;
  std::shared_ptr<ModuleAnalysisManager *> Slot;
};
} // namespace

AnalysisKey InlineAdvisorSourceAnalysis::Key;
AnalysisKey ModuleManagerAnalysis::Key;

/// The factory that LLVM calls to create an advisor. If it returns null, it has
/// reported an error, and the compile fails.
static InlineAdvisor *createAdvisor(Module &M, FunctionAnalysisManager &FAM,
                                    InlineParams Params, InlineContext IC) {
  auto Defined =
      find_if(M, [](const Function &F) { return !F.isDeclaration(); });
  if (Defined == M.end())
    return std::make_unique<DefaultInlineAdvisor>(M, FAM, Params, IC).release();

  ModuleAnalysisManager &MAM =
      FAM.getResult<ModuleManagerAnalysis>(*Defined).Manager;
  InlineAdvisorSource *Source =
      MAM.getResult<InlineAdvisorSourceAnalysis>(M).Source.get();
  return Source ? Source->create(M, MAM, FAM, Params, IC).release() : nullptr;
}

static void registerSource(PassBuilder &PB, OpenSource Open) {
  PB.registerAnalysisRegistrationCallback([=](ModuleAnalysisManager &MAM) {
    MAM.registerPass([&] { return InlineAdvisorSourceAnalysis(Open); });
  });
}

static void registerAdvisor(PassBuilder &PB, OpenSource Open) {
  registerSource(PB, std::move(Open));
  auto Slot = std::make_shared<ModuleAnalysisManager *>(nullptr);
  PB.registerAnalysisRegistrationCallback([=](ModuleAnalysisManager &MAM) {
    *Slot = &MAM;
    MAM.registerPass([] { return PluginInlineAdvisorAnalysis(createAdvisor); });
  });
  PB.registerAnalysisRegistrationCallback([Slot](FunctionAnalysisManager &FAM) {
    FAM.registerPass([&] { return ModuleManagerAnalysis(Slot); });
  });
}

/// Opens the source that -mlbridge-inliner names.
static std::shared_ptr<InlineAdvisorSource> openGiven(Module &M) {
  const DecisionSpec Spec = parseDecisionSpec(inlinerSpec());
  std::unique_ptr<ReplayedModule> Replay;
  if (!Spec.File.empty()) {
    Replay = openDecisions(Spec.File, M);
    if (!Replay)
      return nullptr;
  }
  if (Spec.Model.empty())
    return Replay;
  Expected<CalleeFiles> Files = readCalleeFiles();
  if (!Files) {
    M.getContext().emitError(ModelSession::prefix("mlbridge-inliner", M) +
                             Files.takeError().str());
    return nullptr;
  }
  std::unique_ptr<ModelSession> Session =
      ModelSession::open("mlbridge-inliner", Spec.Model, M);
  if (!Session)
    return nullptr;
  auto State = std::make_shared<InlinerState>(std::move(Session), M);
  State->Replay = std::move(Replay);
  State->Files = std::move(*Files);
  return State;
}

void registerInliner(PassBuilder &PB) {
  if (!inlinerSpec().empty())
    registerAdvisor(PB, openGiven);
}

void registerInlinerOnlyInside(PassBuilder &PB) {
  if (!inlinerSpec().empty())
    registerSource(PB, openGiven);
}

void registerInlinerInside(PassBuilder &Inner, Module &M,
                           ModuleAnalysisManager &Outer) {
  if (!inlinerSpec().empty())
    registerAdvisor(Inner, [&](Module &) {
      return Outer.getResult<InlineAdvisorSourceAnalysis>(M).Source;
    });
}

void registerAdvisorSource(PassBuilder &Inner,
                           std::shared_ptr<InlineAdvisorSource> Source) {
  registerAdvisor(Inner,
                  [Source = std::move(Source)](Module &) { return Source; });
}

} // namespace MLBridge
