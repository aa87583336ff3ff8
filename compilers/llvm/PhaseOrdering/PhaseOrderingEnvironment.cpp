//===- PhaseOrderingEnvironment.cpp - The environment of phase ordering ---===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implements the episodes of the environment. Program applies the actions.
///
//===----------------------------------------------------------------------===//

#include "PhaseOrdering/PhaseOrderingEnvironment.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace MLBridge {

static Error invalid(const Twine &Why) {
  return {ErrorCode::InvalidArgument, Why.str()};
}

Error PhaseOrderingEnvironment::reset(FeatureSet &Into) {
  Current = nullptr;
  Expected<EpisodeSettings> Asked =
      EpisodeSettings::parse(options(), Settings.Programs.Actions);
  if (!Asked)
    return Asked.takeError();
  Episode = std::move(*Asked);
  const RewardFunction &Reward = Settings.Programs.Reward;
  if (Episode.Module.empty())
    return invalid("the options of reset: expected {\"module\": FILE, ...}, "
                   "found no module");
  if (Episode.Result == EpisodeSettings::Final::Best && Reward.isNone())
    return invalid("the options of reset: 'final': \"best\" needs a reward, "
                   "found none");
  const std::size_t Limit = Episode.Steps.value_or(Settings.Steps);
  if (Episode.Sequence.size() > Limit)
    return invalid("the options of reset: 'sequence': expected at most " +
                   Twine(Limit) +
                   " actions, the steps of this episode, found " +
                   Twine(Episode.Sequence.size()));
  Expected<Program *> Found = Programs.get(Episode.Module, [&](StringRef Path) {
    return Program::load(Path, Settings.Programs);
  });
  if (!Found)
    return Found.takeError();
  Current = *Found;

  Taken.clear();
  Oz.reset();
  Expected<Point> First = currentPoint();
  if (!First)
    return First.takeError();
  if (!Reward.isNone()) {
    Expected<Measurements> Stock = Current->stock();
    if (!Stock)
      return Stock.takeError();
    Oz = *Stock;
    Reference = Settings.RelativeToInitial ? First->State.Sizes : *Oz;
    First->Value = Reward.value(First->State.Sizes, Reference);
  }
  Current->takeTimes();
  Last = *First;
  HasChanged = false;
  BestValue = Last.Value;
  Best = Last.State.Sizes;
  BestStep = 0;
  Rewards.clear();
  TextSizes.clear();
  InstructionCounts.clear();
  for (std::uint16_t Action : Episode.Sequence)
    if (Error E = take(Action))
      return E;
  LastReward = 0;
  if (Taken.size() >= Limit)
    setDone();
  return finish(Into);
}

Error PhaseOrderingEnvironment::check(
    const std::vector<std::int64_t> &Numbers) const {
  const std::size_t Count =
      Settings.Programs.Actions.size() + (Settings.WithStop ? 1 : 0);
  if (Numbers.empty())
    return invalid("action: expected at least one action, found none");
  for (std::int64_t Number : Numbers)
    if (Number < 0 || static_cast<std::uint64_t>(Number) >= Count)
      return invalid("action: expected a number from 0 to " + Twine(Count - 1) +
                     " of the action space '" +
                     Settings.Programs.Actions.name() + "', found " +
                     Twine(Number));
  return Error::success();
}

Error PhaseOrderingEnvironment::step(const Advice &Action, FeatureSet &Into) {
  Expected<std::vector<std::int64_t>> Numbers =
      Action.get<std::vector<std::int64_t>>();
  if (!Numbers)
    return Numbers.takeError();
  if (Error E = check(*Numbers))
    return E;
  const std::size_t Limit = Episode.Steps.value_or(Settings.Steps);
  LastReward = 0;
  Rewards.clear();
  TextSizes.clear();
  InstructionCounts.clear();
  for (std::int64_t Number : *Numbers) {
    if (static_cast<std::size_t>(Number) == Settings.Programs.Actions.size())
      setDone();
    else if (Error E = take(static_cast<std::uint16_t>(Number)))
      return E;
    // End the episode at the limit, because the limit is part of the task.
    // Inference stops there too.
    if (Taken.size() >= Limit)
      setDone();
    if (checkDone())
      break;
  }
  return finish(Into);
}

/// Applies one action and computes its reward.
Error PhaseOrderingEnvironment::take(std::uint16_t Action) {
  Taken.push_back(Action);
  Expected<Point> Next = currentPoint();
  if (!Next)
    return Next.takeError();
  const double BestBefore = BestValue;
  if (Next->Value > BestValue) {
    BestValue = Next->Value;
    Best = Next->State.Sizes;
    BestStep = Taken.size();
  }
  const double Worth = Episode.Result == EpisodeSettings::Final::Best
                           ? BestValue - BestBefore
                           : Next->Value - Last.Value;
  LastReward += Worth;
  HasChanged = Next->State.Hash != Last.State.Hash;
  Last = *Next;
  Rewards.push_back(Worth);
  InstructionCounts.push_back(Last.State.Sizes.Instructions);
  if (Last.State.Sizes.TextSize)
    TextSizes.push_back(*Last.State.Sizes.TextSize);
  return Error::success();
}

Expected<PhaseOrderingEnvironment::Point>
PhaseOrderingEnvironment::currentPoint() {
  Expected<Program::State> Found = Current->state(Taken);
  if (!Found)
    return Found.takeError();
  const double Value =
      Oz ? Settings.Programs.Reward.value(Found->Sizes, Reference) : 0;
  return Point{*Found, Value};
}

/// Writes the observation. At the end of the episode, also writes the output
/// file if the trainer has requested one.
Error PhaseOrderingEnvironment::finish(FeatureSet &Into) {
  json::Object About = describe();
  if (checkDone()) {
    const bool TakesBest = Episode.Result == EpisodeSettings::Final::Best;
    const Measurements &Sizes = TakesBest ? Best : Last.State.Sizes;
    const std::size_t Length = TakesBest ? BestStep : Taken.size();
    About["final_step"] = Length;
    if (Sizes.TextSize)
      About["final_text_size"] = *Sizes.TextSize;
    if (!Episode.Output.empty()) {
      ActionSequence Kept(Taken.begin(),
                          Taken.begin() + static_cast<std::ptrdiff_t>(Length));
      if (Error E = Current->write(Kept, Episode.Output))
        return E;
      About["output"] = Episode.Output;
    }
  }
  std::string Text;
  raw_string_ostream(Text) << json::Value(std::move(About));
  setInfo(std::move(Text));
  Features.write(Last.State.View, Taken, Into);
  return Error::success();
}

json::Object PhaseOrderingEnvironment::describe() {
  const Measurements &Sizes = Last.State.Sizes;
  json::Object About{{"module", Episode.Module},
                     {"instructions", Sizes.Instructions},
                     {"sequence", json::Array(Taken)}};
  if (Sizes.TextSize)
    About["text_size"] = *Sizes.TextSize;
  if (Sizes.Cycles)
    About["mca_cycles"] = *Sizes.Cycles;
  if (Sizes.WeightedCycles)
    About["weighted_cycles"] = *Sizes.WeightedCycles;
  if (Last.State.Hash) {
    constexpr unsigned Digits = 16;
    About["ir_hash"] = utohexstr(*Last.State.Hash, /*LowerCase=*/true, Digits);
    About["changed"] = HasChanged;
  }
  if (Oz) {
    About["best_step"] = BestStep;
    About["best_value"] = BestValue;
    About["oz_instructions"] = Oz->Instructions;
    if (Oz->TextSize) {
      About["oz_text_size"] = *Oz->TextSize;
      About["best_text_size"] = *Best.TextSize;
    }
    if (Oz->Cycles)
      About["oz_mca_cycles"] = *Oz->Cycles;
    if (Oz->WeightedCycles)
      About["oz_weighted_cycles"] = *Oz->WeightedCycles;
  }
  if (!InstructionCounts.empty()) {
    About["rewards"] = json::Array(Rewards);
    About["instruction_counts"] = json::Array(InstructionCounts);
    if (!TextSizes.empty())
      About["text_sizes"] = json::Array(TextSizes);
  }
  const Program::Times Spent = Current->takeTimes();
  About["step_ms"] = Spent.Passes;
  About["emit_ms"] = Spent.Emission;
  return About;
}

} // namespace MLBridge
