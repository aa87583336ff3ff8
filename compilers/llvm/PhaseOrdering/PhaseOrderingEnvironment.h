//===- PhaseOrderingEnvironment.h - Learning in which order passes run -*- C++
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
/// an action runs a few passes on it, and the reward is how much smaller (or
/// faster) that made its machine code. docs/phase-ordering.md says what a
/// trainer sees of it.
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

  /// The options are those of EpisodeRequest.
  Error reset(FeatureSet &Into) override;
  /// \p Action is the number of an action, or several, which are taken one
  /// after the other.
  Error step(const Advice &Action, FeatureSet &Into) override;
  double reward() const override { return LastReward; }

private:
  /// What is known of a state of this episode.
  struct Point {
    Program::State State;
    double Value = 0;
  };

  Error check(const std::vector<std::int64_t> &Numbers) const;
  Error take(std::uint16_t Action);
  Error finish(FeatureSet &Into);
  /// Looks at the state that Taken leads to.
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
  /// The value of the best state so far, its size, and how many actions led to
  /// it.
  double BestValue = 0;
  Measurements Best;
  std::size_t BestStep = 0;
  double LastReward = 0;
  /// Of each action of the last step.
  llvm::json::Array Rewards, TextSizes, InstructionCounts;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGENVIRONMENT_H
