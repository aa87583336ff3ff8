//===- PhaseOrderingEnvironment.h - The environment -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PhaseOrderingEnvironment is the environment of the POSET-RL paper. An
/// episode optimises one program. An action runs a few passes on the program.
/// The reward is the relative decrease of the machine code's size, or of its
/// estimated cycles. docs/guides/phase-ordering.md describes the environment
/// for trainers.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGENVIRONMENT_H
#define MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGENVIRONMENT_H

#include "PhaseOrdering/EpisodeSettings.h"
#include "PhaseOrdering/PhaseOrderingSettings.h"
#include "PhaseOrdering/Program.h"
#include "Support/FileCache.h"

#include "MLCompilerBridge/Training/Environment.h"

#include "llvm/Support/JSON.h"

namespace MLBridge {

class PhaseOrderingEnvironment final : public Environment {
public:
  PhaseOrderingEnvironment(PhaseOrderingSettings Settings, Observation Features)
      : Settings(std::move(Settings)), Programs(this->Settings.KeptPrograms),
        Features(std::move(Features)) {}

  /// Starts an episode. EpisodeSettings parses the trainer's options.
  Error reset(FeatureSet &Into) override;
  /// Applies actions. \p Action contains the index of one action, or the
  /// indices of several actions, which are applied in order.
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
  /// Returns the state after the actions in Taken, and its value.
  Expected<Point> currentPoint();
  llvm::json::Object describe();

  const PhaseOrderingSettings Settings;
  FileCache<Program> Programs;
  Observation Features;

  EpisodeSettings Episode;
  Program *Current = nullptr;
  std::optional<Measurements> Oz;
  Measurements Reference;
  ActionSequence Taken;
  Point Last;
  bool HasChanged = false;
  /// The best state so far: its value, its measurements, and the number of
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
