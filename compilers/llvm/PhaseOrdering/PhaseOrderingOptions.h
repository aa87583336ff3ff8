//===- PhaseOrderingOptions.h - Phase ordering's command line ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The options of phase ordering, converted to settings.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGOPTIONS_H
#define MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGOPTIONS_H

#include "PhaseOrdering/PhaseOrderingSettings.h"

#include "MLCompilerBridge/MLModelRunner.h"

namespace MLBridge {

/// How a model was trained, according to its metadata: the entry
/// `mlbridge.phase-ordering`, `{"actions": NAME or SPACE, "steps": N, "stop":
/// BOOL, "observation": "histogram,step", "embedding": {"kind": "symbolic",
/// "normalization": "none"}}`, where every key is optional, and
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
  /// The model's name, for messages.
  std::string Model;

  /// Reads the metadata. Errors: Malformed if the entry has another form; those
  /// of ActionSpace, and of a model that cannot be loaded.
  static Expected<PhaseOrderingContract> of(MLModelRunner &Runner);
};

/// The settings of an environment and its observations.
struct PhaseOrderingSetup {
  PhaseOrderingSettings Settings;
  Observation Features;

  /// Uses the options; options that were not given are taken from \p Trained.
  /// Errors: SchemaMismatch if an option contradicts the model's training;
  /// those of ActionSpace, RewardFunction and Observation.
  static Expected<PhaseOrderingSetup>
  fromOptions(const PhaseOrderingContract &Trained = {});
};

/// `-mlbridge-phase-ordering=SPEC`: the model that decides. Empty: LLVM's
/// pipeline stays.
llvm::StringRef phaseOrderingSpec();

/// `-mlbridge-search=K` and related options.
struct SearchOptions {
  /// The number of sequences to try besides LLVM's own pipeline. 0: no search;
  /// the model decides on one sequence.
  unsigned Rollouts = 0;
  /// When to stop starting new sequences, in milliseconds; 0: no limit.
  unsigned Budget = 0;
  /// The random seed.
  unsigned Seed = 0;
};
SearchOptions searchOptions();

/// `-mlbridge-environment=SPEC`, or else the environment variable
/// MLBRIDGE_SPEC: the address of the trainer. Empty if neither is set.
std::string environmentSpec();

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGOPTIONS_H
