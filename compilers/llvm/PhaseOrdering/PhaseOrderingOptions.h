//===- PhaseOrderingOptions.h - Phase ordering's command line ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Converts the command line's options of phase ordering to settings.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGOPTIONS_H
#define MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGOPTIONS_H

#include "PhaseOrdering/PhaseOrderingSettings.h"

#include "MLCompilerBridge/MLModelRunner.h"

namespace MLBridge {

/// Describes how a model was trained, according to two entries of the model's
/// metadata. The entry `mlbridge.vocabulary` identifies the vocabulary. The
/// entry `mlbridge.phase-ordering` has this form, in which every key is
/// optional: `{"actions": NAME or SPACE, "steps": N, "stop": BOOL, "lookahead":
/// N, "observation": "histogram,step", "embedding": {"kind": "symbolic",
/// "normalization": "none"}}`.
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

  /// Reads the metadata of the runner's model. Returns Malformed if the entry
  /// `mlbridge.phase-ordering` has another form. Also returns the errors of
  /// ActionSpace, and the runner's error if the model cannot be loaded.
  static Expected<PhaseOrderingContract> of(MLModelRunner &Runner);
};

/// The settings of an episode and its observation.
struct PhaseOrderingSetup {
  PhaseOrderingSettings Settings;
  Observation Features;

  /// Creates the settings from the command line. An option that was not given
  /// has the value from \p Trained. Returns SchemaMismatch if an option
  /// contradicts the model's training. Also returns the errors of ActionSpace,
  /// RewardFunction and Observation.
  static Expected<PhaseOrderingSetup>
  fromOptions(const PhaseOrderingContract &Trained = {});
};

/// Returns the value of `-mlbridge-phase-ordering=SPEC`, the spec of the model
/// that decides. Without this option, -mlbridge-size selects the built-in
/// model. If the spec is empty, LLVM's pipeline is not replaced.
llvm::StringRef phaseOrderingSpec();

/// The values of `-mlbridge-search=K` and related options.
struct SearchOptions {
  /// The number of sequences to try in addition to LLVM's own pipeline. If 0,
  /// there is no search, and the model chooses one sequence.
  unsigned Rollouts = 0;
  /// The time in milliseconds after which no new sequence is tried. If 0, there
  /// is no limit.
  unsigned Budget = 0;
  unsigned Seed = 0;
};
SearchOptions searchOptions();

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGOPTIONS_H
