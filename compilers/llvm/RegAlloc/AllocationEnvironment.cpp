//===- AllocationEnvironment.cpp - Trains register allocation -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs the episodes. In the form Question, each episode is a trial in a forked
/// process, so that a function can have many episodes. In the form Dialogue,
/// the episode is the final allocation of the function.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/AllocationEnvironment.h"

#include "RegAlloc/AllocationReward.h"
#include "RegAlloc/RegisterAllocator.h"

#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <unistd.h>

using namespace llvm;

namespace MLBridge {

void AllocationEnvironment::beginModule(Module &M) {
  ModuleName = M.getModuleIdentifier();
}

bool AllocationEnvironment::waitForReset() {
  if (!HasReset)
    HasReset = Trainer.waitForReset();
  TrainerLeft = !HasReset;
  return HasReset;
}

std::unique_ptr<AllocationPolicy>
AllocationEnvironment::begin(const AllocationContext &Context) {
  // In a trial, let greedy allocate the functions after the tried function.
  if (Pipe >= 0)
    return nullptr;
  const bool IsTooLong =
      Options.MaxRanges != 0 && countRegisters(Context.MRI) > Options.MaxRanges;
  if (TrainerLeft || IsTooLong || costWithFreeColours(Context) == 0)
    return nullptr;
  // Fork only while the thread that serves the trainer waits for its turn. The
  // thread then holds no locks.
  if (!waitForReset())
    return nullptr;
  const Function &F = Context.MF.getFunction();
  auto Fail = [&](const Error &E) {
    F.getContext().emitError("mlbridge-regalloc-environment: " + E.str());
    return nullptr;
  };
  if (needsObject())
    if (Error E = checkCyclesOf(F))
      return Fail(E);
  FunctionName = Context.MF.getName();
  const Trial ByGreedy = forkTrial(MaxTrialTime);
  if (ByGreedy.IsCopy) {
    Pipe = ByGreedy.Pipe;
    return nullptr;
  }
  if (!ByGreedy.Outcome || ByGreedy.Outcome->Cost.total() == 0)
    return nullptr;
  Greedy = measure(*ByGreedy.Outcome);
  Observation.buildBefore(Context);
  if (Error E = Observation.addInstructions(Context, Options.Vocabulary))
    return Fail(E);
  if (Options.Form == AllocatorForm::Dialogue) {
    InDialogue = true;
    HasReset = false;
    return makeDialogue(Context, Observation, *this);
  }
  for (unsigned I = 0; I != Options.Repeats && waitForReset(); ++I) {
    HasReset = false;
    if (auto Policy = question(Context))
      return Policy;
  }
  return nullptr;
}

/// Ends the episode. \p Found is empty if the trial failed.
void AllocationEnvironment::endEpisode(
    const std::optional<TrialOutcome> &Found,
    const SteppedEnvironment::Observer &Last) {
  std::optional<double> Measure;
  if (Found)
    Measure = measure(*Found);
  json::Object Info{{"module", json::fixUTF8(ModuleName)},
                    {"function", json::fixUTF8(FunctionName)},
                    {"greedy", Greedy}};
  if (Measure)
    Info["cost"] = *Measure;
  std::string Text;
  raw_string_ostream(Text) << json::Value(std::move(Info));
  Trainer.endEpisode(allocationReward(Greedy, Measure), Last, std::move(Text));
}

std::unique_ptr<AllocationPolicy>
AllocationEnvironment::question(const AllocationContext &Context) {
  auto Observe = [&](FeatureSet &Into) { Observation.setFeatures(Into); };
  const Advice *Action = Trainer.act(Observe);
  if (!Action)
    return nullptr;
  Expected<Preferences> Reply = Preferences::from(*Action, Observation.size());
  if (!Reply) {
    Trainer.failEpisode(Reply.takeError());
    return nullptr;
  }
  Given = std::move(*Reply);
  const Trial Result = forkTrial(MaxTrialTime);
  if (Result.IsCopy) {
    Pipe = Result.Pipe;
    return makePreferences(Context, Observation, Given);
  }
  endEpisode(Result.Outcome, Observe);
  return nullptr;
}

std::optional<std::int64_t>
AllocationEnvironment::decide(std::string_view Agent,
                              const DialogueObservation &Step) {
  if (!InDialogue)
    return std::nullopt;
  LastAgent = Agent;
  const Advice *Action = Trainer.act(
      [&](FeatureSet &Into) { Step.setFeatures(Agent, Observation, Into); },
      LastAgent);
  if (!Action) {
    InDialogue = false;
    return std::nullopt;
  }
  Expected<std::int64_t> Choice = Action->get<std::int64_t>();
  if (!Choice) {
    refuse(Choice.takeError());
    return std::nullopt;
  }
  return *Choice;
}

void AllocationEnvironment::refuse(Error Why) {
  InDialogue = false;
  Trainer.failEpisode(std::move(Why));
}

void AllocationEnvironment::finish(const MachineFunction &,
                                   const AllocationCost &Cost) {
  if (Pipe >= 0 && !needsObject())
    endTrial(Pipe, {Cost});
  // Store only the first cost, which is the cost of the tried function.
  if (Pipe >= 0 && !TrialCost)
    TrialCost = Cost;
  if (!InDialogue)
    return;
  InDialogue = false;
  std::optional<TrialOutcome> Found{{Cost}};
  if (needsObject()) {
    const Trial Measured = forkTrial(MaxTrialTime);
    if (Measured.IsCopy) {
      Pipe = Measured.Pipe;
      TrialCost = Cost;
      return;
    }
    Found = Measured.Outcome;
  }
  endEpisode(Found, [&](FeatureSet &Into) {
    Zeros.setFeatures(LastAgent, Observation, Into);
  });
}

void AllocationEnvironment::finishModule(const Module &M,
                                         const ObjectCode &Object) {
  if (Pipe < 0)
    return;
  if (const Function *F = M.getFunction(FunctionName); F && TrialCost)
    if (Expected<double> Cycles = cyclesOfFunction(Object, *F))
      endTrial(Pipe, {*TrialCost, *Cycles});
  _exit(1); // A trial without an outcome has failed.
}

} // namespace MLBridge
