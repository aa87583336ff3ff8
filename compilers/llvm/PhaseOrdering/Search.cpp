//===- Search.cpp - Searches for the best sequence ------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tries the sequences one after another.
///
//===----------------------------------------------------------------------===//

#include "PhaseOrdering/Search.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

#include <chrono>
#include <cmath>
#include <numeric>
#include <random>

using namespace llvm;

namespace MLBridge {

/// Draws an index with the probabilities softmax(\p Values). It does not use
/// std::discrete_distribution, because implementations of the standard library
/// draw differently.
static std::size_t draw(ArrayRef<float> Values, std::mt19937_64 &Random) {
  const double Max = *max_element(Values);
  std::vector<double> Weights;
  double Sum = 0;
  for (float Value : Values) {
    // Handle the maximum separately, because infinity minus infinity is NaN.
    Weights.push_back(Value == Max ? 1 : std::exp(Value - Max));
    Sum += Weights.back();
  }
  constexpr double Range = 18446744073709551616.0; // 2^64
  double Left = static_cast<double>(Random()) / Range * Sum;
  for (const auto &[Index, Weight] : enumerate(Weights)) {
    Left -= Weight;
    if (Left < 0)
      return Index;
  }
  return static_cast<std::size_t>(
      std::distance(Values.begin(), max_element(Values)));
}

Expected<std::uint16_t> lookAhead(Outcome Of, unsigned Count,
                                  PhaseOrderingPolicy &Policy) {
  std::optional<std::uint16_t> Best;
  float BestValue = 0;
  Error FirstFailure;
  for (unsigned Number = 0; Number < Count; ++Number) {
    // The cast is safe, because ActionSpace limits the number of actions.
    const auto Action = static_cast<std::uint16_t>(Number);
    Expected<ModuleView> Made = Of(Action);
    if (!Made) {
      Error E = Made.takeError();
      if (!FirstFailure)
        FirstFailure = std::move(E);
      continue;
    }
    Expected<float> Value = Policy.value(*Made, {Action});
    if (!Value)
      return Value.takeError();
    if (!Best || *Value > BestValue) {
      Best = Action;
      BestValue = *Value;
    }
  }
  if (!Best)
    return FirstFailure;
  return *Best;
}

namespace {

class Searcher {
public:
  Searcher(Program &Of, PhaseOrderingPolicy &Policy,
           const PhaseOrderingSettings &Settings, const SearchOptions &How)
      : Of(Of), Policy(Policy), Settings(Settings), How(How), Random(How.Seed) {
  }

  Expected<SearchResult> run();

private:
  Error trySteps();
  Error tryFirstChoices();
  /// Returns the actions in the order in which to try them.
  Expected<std::vector<std::size_t>> firstChoices();
  /// Runs an episode and returns its sequence. If \p AtRandom, actions are
  /// sampled from the policy's scores. Otherwise, they are the policy's
  /// choices. If a pass fails, the failure is recorded and the result is empty.
  Expected<std::optional<ActionSequence>> rollOut(bool AtRandom);
  void tryCandidate(const ActionSequence &Candidate);
  void noteFailure(Error E);
  bool isOver() const {
    return How.Budget != 0 && std::chrono::steady_clock::now() - Start >=
                                  std::chrono::milliseconds(How.Budget);
  }

  Program &Of;
  PhaseOrderingPolicy &Policy;
  const PhaseOrderingSettings &Settings;
  const SearchOptions How;
  std::mt19937_64 Random;
  const std::chrono::steady_clock::time_point Start =
      std::chrono::steady_clock::now();
  bool HasValues = false;
  SearchResult Result;
  Error FirstFailure;
};

} // namespace

Expected<SearchResult> Searcher::run() {
  Expected<Measurements> Stock = Of.stock();
  if (!Stock)
    return Stock.takeError();
  Result.StockTextSize = Result.TextSize = Stock->TextSize.value_or(0);
  if (Error E = Settings.Steps == 1 ? tryFirstChoices() : trySteps())
    return E;
  if (Result.Failures != 0 && Result.Failures == Result.Rollouts)
    return FirstFailure;
  return Result;
}

void Searcher::noteFailure(Error E) {
  if (Result.Failures++ == 0)
    FirstFailure = std::move(E);
}

void Searcher::tryCandidate(const ActionSequence &Candidate) {
  Expected<Program::State> Found = Of.state(Candidate);
  if (!Found)
    return noteFailure(Found.takeError());
  const std::uint64_t Size = Found->Sizes.TextSize.value_or(0);
  if (Size < Result.TextSize) {
    Result.TextSize = Size;
    Result.Sequence = Candidate;
  }
}

Expected<std::vector<std::size_t>> Searcher::firstChoices() {
  if (Settings.Lookahead != 0) {
    Expected<std::uint16_t> Best =
        lookAhead([&](std::uint16_t Action) { return Of.view({Action}); },
                  Settings.Lookahead, Policy);
    if (!Best)
      return Best.takeError();
    std::vector<std::size_t> Choices(Settings.Programs.Actions.size());
    std::iota(Choices.begin(), Choices.end(), std::size_t(0));
    std::rotate(Choices.begin(), Choices.begin() + *Best,
                Choices.begin() + *Best + 1);
    return Choices;
  }
  Expected<ModuleView> Seen = Of.view({});
  if (!Seen)
    return Seen.takeError();
  Expected<PhaseOrderingPolicy::Reply> Given = Policy.ask(*Seen, {});
  if (!Given)
    return Given.takeError();
  std::vector<std::size_t> Choices{Given->Action};
  if (!Given->Values.empty()) {
    Choices.resize(Given->Values.size());
    std::iota(Choices.begin(), Choices.end(), std::size_t(0));
    llvm::sort(Choices, [&](std::size_t A, std::size_t B) {
      return std::pair(Given->Values[B], A) < std::pair(Given->Values[A], B);
    });
  }
  return Choices;
}

Error Searcher::tryFirstChoices() {
  Expected<std::vector<std::size_t>> Choices = firstChoices();
  if (!Choices)
    return Choices.takeError();
  for (std::size_t Choice : *Choices) {
    if (Result.Rollouts >= How.Rollouts || isOver())
      break;
    ActionSequence Candidate;
    if (Choice < Settings.Programs.Actions.size())
      Candidate.push_back(static_cast<std::uint16_t>(Choice));
    ++Result.Rollouts;
    tryCandidate(Candidate);
  }
  return Error::success();
}

Error Searcher::trySteps() {
  while (Result.Rollouts < How.Rollouts && !isOver()) {
    Expected<std::optional<ActionSequence>> Candidate =
        rollOut(Result.Rollouts != 0);
    if (!Candidate)
      return Candidate.takeError();
    ++Result.Rollouts;
    if (*Candidate)
      tryCandidate(**Candidate);
    if (!HasValues)
      break;
  }
  return Error::success();
}

Expected<std::optional<ActionSequence>> Searcher::rollOut(bool AtRandom) {
  ActionSequence Taken;
  while (Taken.size() < Settings.Steps) {
    Expected<ModuleView> Seen = Of.view(Taken);
    if (!Seen) {
      noteFailure(Seen.takeError());
      return std::nullopt;
    }
    Expected<PhaseOrderingPolicy::Reply> Given = Policy.ask(*Seen, Taken);
    if (!Given)
      return Given.takeError();
    HasValues |= !Given->Values.empty();
    const std::size_t Choice = AtRandom && !Given->Values.empty()
                                   ? draw(Given->Values, Random)
                                   : Given->Action;
    if (Choice >= Settings.Programs.Actions.size())
      break;
    Taken.push_back(static_cast<std::uint16_t>(Choice));
  }
  return std::optional(std::move(Taken));
}

Expected<SearchResult> search(Program &Of, PhaseOrderingPolicy &Policy,
                              const PhaseOrderingSettings &Settings,
                              const SearchOptions &How) {
  return Searcher(Of, Policy, Settings, How).run();
}

} // namespace MLBridge
