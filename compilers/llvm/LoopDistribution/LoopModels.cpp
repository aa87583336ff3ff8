//===- LoopModels.cpp - Models that decide about loops --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Sends observations of loops and checks the replies.
///
//===----------------------------------------------------------------------===//

#include "LoopDistribution/LoopModels.h"

#include "IR2Vec/IR2VecOptions.h"
#include "LoopDistribution/DistributionCandidates.h"
#include "LoopDistribution/DistributionPlan.h"
#include "LoopDistribution/FactorCandidates.h"
#include "LoopDistribution/LoopObservation.h"
#include "Support/Options.h"

#include "MLCompilerBridge/Extend/ReservedNames.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace MLBridge {

using Clock = std::chrono::steady_clock;

namespace {

/// The loops of the seeds placed so far, and the legal next choices.
class Placement {
public:
  Placement(const DependenceGraph &Graph, const LoopAnalyses &Analyses)
      : Seeds(Graph.seeds()), LoopOf(Graph.nodes().size(), -1) {
    for (const DistributionPlan &Plan : legalPlans(Graph, Analyses))
      Candidates.push_back(Plan.partition());
  }

  bool isComplete() const { return Placed == Seeds.size(); }
  bool isEmpty() const { return Placed == 0; }
  ArrayRef<std::int32_t> loopOf() const { return LoopOf; }
  std::vector<std::int64_t> result() const {
    return {LoopOf.begin(), LoopOf.end()};
  }

  /// True if the placed seeds and \p Node are the start of a legal
  /// distribution. \p Node is in a new loop if \p IsNew is true, or else in the
  /// current loop.
  bool isLegal(unsigned Node, bool IsNew) const {
    const std::int64_t Loop = Current + (IsNew ? 1 : 0);
    if (LoopOf[Node] >= 0 || (IsNew && isEmpty()))
      return false;
    return any_of(Candidates, [&](const std::vector<std::int64_t> &Candidate) {
      return Candidate[Node] == Loop && all_of(Seeds, [&](unsigned Seed) {
               return LoopOf[Seed] >= 0 ? Candidate[Seed] == LoopOf[Seed]
                                        : Candidate[Seed] >= Loop;
             });
    });
  }
  std::vector<float> nodeMask() const {
    std::vector<float> Mask;
    for (unsigned Seed : Seeds)
      Mask.push_back(isLegal(Seed, false) || isLegal(Seed, true));
    return Mask;
  }
  std::vector<float> partitionMask(unsigned Node) const {
    return {float(isLegal(Node, false)), float(isLegal(Node, true))};
  }
  void place(unsigned Node, bool IsNew) {
    Current += IsNew ? 1 : 0;
    LoopOf[Node] = Current;
    ++Placed;
  }

private:
  ArrayRef<unsigned> Seeds;
  std::vector<std::vector<std::int64_t>> Candidates;
  std::vector<std::int32_t> LoopOf;
  std::int32_t Current = 0;
  std::size_t Placed = 0;
};

} // namespace

std::unique_ptr<LoopModels> LoopModels::open(const LoopOptions &Options,
                                             Module &M) {
  std::unique_ptr<LoopModels> Result(new LoopModels(Options, M));
  for (auto [Asked, Name, Spec] :
       {std::tuple(&Result->Distribution, LoopDistributionName,
                   Options.DistributionSpec),
        std::tuple(&Result->Factors, LoopFactorsName, Options.FactorsSpec)}) {
    if (Spec.empty())
      continue;
    Asked->Session = ModelSession::open(Name, Spec, M);
    if (!Asked->Session)
      return nullptr;
  }
  if (ir2vecVocabulary().empty())
    return Result;
  Expected<EmbeddingVocabulary> Loaded =
      EmbeddingVocabulary::load(ir2vecVocabulary());
  if (!Loaded) {
    M.getContext().emitError(Twine(LoopDistributionName) + ": " +
                             Loaded.takeError().str());
    return nullptr;
  }
  Result->Vocabulary = std::move(*Loaded);
  return Result;
}

LoopModels::~LoopModels() {
  if (!MLBridge::printStatistics())
    return;
  for (const Model *Each : {&Distribution, &Factors})
    if (Each->Session)
      printStatistics(*Each);
}

void LoopModels::printStatistics(const Model &Asked) {
  using Microseconds = std::chrono::duration<double, std::micro>;
  const std::uint64_t Requests = Asked.Session->requests();
  std::string Line = Asked.Session->statistics();
  if (Requests != 0)
    Line += formatv(" reply_us={0:F2}",
                    Microseconds(Asked.Replying).count() / double(Requests));
  printLine(Line);
}

void LoopModels::reject(Model &Asked, const Error &Why) {
  Asked.Session->countUndecided(
      {Why.code(), Asked.Session->runner().describe() + ": " + Why.message()});
}

void LoopModels::flush() {
  for (Model *Each : {&Distribution, &Factors})
    if (Each->Session)
      Each->Session->flush();
}

template <typename T> std::optional<T> LoopModels::request(Model &Asked) {
  MLModelRunner &Runner = Asked.Session->runner();
  const Clock::time_point Begin = Clock::now();
  Expected<Advice> Reply = Runner.ask(Features, AdviceSpec::of<T>());
  Asked.Replying += Clock::now() - Begin;
  Asked.Session->countRequest();
  if (!Reply) {
    Asked.Session->countUndecided(Reply.takeError());
    return std::nullopt;
  }
  Expected<T> Result = Runner.convert<T>(*Reply);
  if (!Result) {
    Asked.Session->countUndecided(Result.takeError());
    return std::nullopt;
  }
  return std::move(*Result);
}

/// Returns the names of the loop's module and function, for logs.
static std::string contextOf(const DependenceGraph &Graph, const Module &M) {
  const BasicBlock &Header = *Graph.loop().getHeader();
  return M.getModuleIdentifier() + ":" + Header.getParent()->getName().str();
}

std::optional<std::vector<std::int64_t>>
LoopModels::partition(const DependenceGraph &Graph,
                      const LoopAnalyses &Analyses) {
  if (!Distribution.decides())
    return std::nullopt;
  Distribution.Session->runner().switchContext(contextOf(Graph, M));
  const LoopObservation Observation(Graph, Analyses,
                                    Vocabulary ? &*Vocabulary : nullptr);
  if (Form == DistributionForm::Dialogue)
    return dialogue(Graph, Analyses, Observation);
  const DistributionCandidates Candidates(Graph, Analyses);
  Features.clear();
  Observation.setFeatures(Features);
  Candidates.setFeatures(Features);
  auto Result = request<std::vector<std::int64_t>>(Distribution);
  if (!Result || Result->size() == Graph.nodes().size())
    return Result;
  if (Result->size() == 1)
    if (auto Chosen = Candidates.at(Result->front()))
      return Chosen;
  reject(Distribution,
         {ErrorCode::Model,
          formatv("expected an index below {0}, or {1} numbers, a loop for "
                  "each node; found {2}",
                  Candidates.size(), Graph.nodes().size(),
                  Result->size() == 1
                      ? std::to_string(Result->front())
                      : std::to_string(Result->size()) + " numbers")});
  return std::nullopt;
}

std::optional<std::vector<std::int64_t>>
LoopModels::dialogue(const DependenceGraph &Graph, const LoopAnalyses &Analyses,
                     const LoopObservation &Observation) {
  Placement State(Graph, Analyses);
  const auto Choose = [&](StringRef Agent, ArrayRef<float> Mask,
                          const std::int32_t *Node) -> std::optional<unsigned> {
    Features.clear();
    Features.set(ReservedNames::Agent, std::string_view(Agent));
    Observation.setFeatures(Features);
    Features.set("loop_of", Span<const std::int32_t>(State.loopOf().data(),
                                                     State.loopOf().size()));
    if (Node)
      Features.set("node", *Node);
    Features.set("action_mask", Span<const float>(Mask.data(), Mask.size()));
    const auto Choice = request<std::int64_t>(Distribution);
    if (!Choice)
      return std::nullopt;
    if (Error E = checkChoice(Agent, Mask, *Choice)) {
      reject(Distribution, E);
      return std::nullopt;
    }
    return unsigned(*Choice);
  };
  while (!State.isComplete()) {
    const auto Seed = Choose("node", State.nodeMask(), nullptr);
    if (!Seed)
      return std::nullopt;
    const auto Node = std::int32_t(Graph.seeds()[*Seed]);
    bool IsNew = false;
    if (!State.isEmpty()) {
      const auto Loop =
          Choose("partition", State.partitionMask(unsigned(Node)), &Node);
      if (!Loop)
        return std::nullopt;
      IsNew = *Loop == 1;
    }
    State.place(unsigned(Node), IsNew);
  }
  return State.result();
}

std::optional<std::int64_t> LoopModels::factors(const DependenceGraph &Graph,
                                                const LoopAnalyses &Analyses,
                                                ArrayRef<float> Legal) {
  if (!Factors.decides())
    return std::nullopt;
  Factors.Session->runner().switchContext(contextOf(Graph, M));
  const LoopObservation Observation(Graph, Analyses,
                                    Vocabulary ? &*Vocabulary : nullptr);
  const FactorCandidates Candidates(Graph, Analyses, Legal);
  Features.clear();
  Observation.setFeatures(Features);
  Candidates.setFeatures(Features);
  const auto Choice = request<std::int64_t>(Factors);
  if (!Choice)
    return std::nullopt;
  if (Error E = checkChoice("factors", Legal, *Choice)) {
    reject(Factors, E);
    return std::nullopt;
  }
  return Choice;
}

} // namespace MLBridge
