//===- PhaseOrderingEnvironment.h - The environment of phase ordering -*- C++
//-*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PhaseOrderingEnvironment: the POSET-RL environment. An episode is a program,
/// an action runs a few passes on it, and the reward is the relative decrease
/// in the size (or time) of its machine code. docs/guides/phase-ordering.md
/// describes the trainer's view.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGENVIRONMENT_H
#define MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGENVIRONMENT_H

#include "PhaseOrdering/EpisodeRequest.h"
#include "PhaseOrdering/PhaseOrderingSettings.h"
#include "PhaseOrdering/ProgramCache.h"

#include "MLCompilerBridge/Training/Environment.h"

#include "llvm/Support/JSON.h"

namespace MLBridge {

class PhaseOrderingEnvironment final : public Environment {
public:
  PhaseOrderingEnvironment(PhaseOrderingSettings Settings, Observation Features)
      : Settings(std::move(Settings)),
        Programs(this->Settings.Programs, this->Settings.KeptPrograms),
        Features(std::move(Features)) {}

  /// The options of the episode are those of EpisodeRequest.
  Error reset(FeatureSet &Into) override;
  /// \p Action is the number of an action, or several numbers, whose actions
  /// are applied in order.
  Error step(const Advice &Action, FeatureSet &Into) override;
  double reward() const override { return LastReward; }

private:
  /// A state of this episode and its value.
  struct Point {
    Program::State State;
    double Value = 0;
  };

  Error check(const std::vector<std::int64_t> &Numbers) const;
  Error take(std::uint16_t Action);
  Error finish(FeatureSet &Into);
  /// Evaluates the state after the actions in Taken.
  Expected<Point> look();
  llvm::json::Object describe();

  const PhaseOrderingSettings Settings;
  ProgramCache Programs;
  Observation Features;

  EpisodeRequest Request;
  Program *Current = nullptr;
  std::optional<Measurements> Oz;
  Measurements Reference;
  ActionSequence Taken;
  Point Last;
  bool HasChanged = false;
  /// The value of the best state so far, its measurements, and the number of
  /// actions that led to it.
  double BestValue = 0;
  Measurements Best;
  std::size_t BestStep = 0;
  double LastReward = 0;
  /// One entry for each action of the last step.
  llvm::json::Array Rewards, TextSizes, InstructionCounts;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGENVIRONMENT_H
