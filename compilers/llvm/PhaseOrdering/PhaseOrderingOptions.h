//===- PhaseOrderingOptions.h - Phase ordering's command line ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The options of phase ordering, as what they mean.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGOPTIONS_H
#define MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGOPTIONS_H

#include "PhaseOrdering/PhaseOrderingSettings.h"

#include "MLCompilerBridge/MLModelRunner.h"

namespace MLBridge {

/// What a model's file says of how it was trained: the entry
/// `mlbridge.phase-ordering`, `{"actions": NAME or SPACE, "steps": N, "stop":
/// BOOL, "observation": "histogram,step", "embedding": {"kind": "symbolic",
/// "normalization": "none"}}`, all of which may be missing, and
/// `mlbridge.vocabulary`.
struct PhaseOrderingContract {
  std::optional<ActionSpace> Actions;
  std::optional<bool> Stop;
  std::optional<unsigned> Steps;
  std::optional<unsigned> Lookahead;
  std::optional<std::string> Observation;
  std::optional<EmbeddingKind> Kind;
  std::optional<Normalization> Normalize;
  std::optional<std::string> Vocabulary;
  /// The model, for messages.
  std::string Model;

  /// Malformed where the entry is something else; the errors of ActionSpace,
  /// and of a model that cannot be loaded.
  static Expected<PhaseOrderingContract> of(MLModelRunner &Runner);
};

/// What an environment is made with, and what its observations are.
struct PhaseOrderingSetup {
  PhaseOrderingSettings Settings;
  Observation Features;

  /// By the options, and where these were not given as \p Said. SchemaMismatch
  /// where they were given otherwise than the model was trained; else the
  /// errors of ActionSpace, RewardFunction and Observation.
  static Expected<PhaseOrderingSetup>
  fromOptions(const PhaseOrderingContract &Said = {});
};

/// `-mlbridge-phase-ordering=SPEC`: the model that decides; empty where LLVM's
/// pipeline is to be left alone.
llvm::StringRef phaseOrderingSpec();

/// `-mlbridge-search=K` and what belongs to it.
struct SearchOptions {
  /// How many sequences are tried beside LLVM's own pipeline; 0: none, one is
  /// decided on.
  unsigned Rollouts = 0;
  /// When no other is begun, in milliseconds; 0: never.
  unsigned Budget = 0;
  /// Of what is drawn at random.
  unsigned Seed = 0;
};
SearchOptions searchOptions();

/// `-mlbridge-environment=SPEC`: where the trainer is; else the variable
/// MLBRIDGE_SPEC. Empty where neither says so.
std::string environmentSpec();

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGOPTIONS_H
