//===- Observation.h - The features of an episode ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Observation computes the features of phase ordering. The user selects
/// features by name. Training and inference use the same code.
///
/// | feature | type | meaning |
/// | --- | --- | --- |
/// | `histogram` | float[110] | count of each IR entity of IR2Vec |
/// | `embedding` | float[n] | the IR2Vec embedding |
/// | `counts` | float[12] | the counts of ModuleCounts |
/// | `step` | float[1] | number of actions taken so far |
/// | `actions` | float[2a] | for a actions: how often each was taken, |
/// | | | then a one-hot vector of the last action |
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_OBSERVATION_H
#define MLBRIDGE_LLVM_PHASEORDERING_OBSERVATION_H

#include "IR2Vec/ModuleEmbedder.h"
#include "PhaseOrdering/ModuleCounts.h"

#include "MLCompilerBridge/FeatureSet.h"

#include "llvm/ADT/ArrayRef.h"

#include <optional>

namespace MLBridge {

/// Indices of actions, in the order in which the actions were taken.
using ActionSequence = std::vector<std::uint16_t>;

/// The histogram and the counts of a module. Observations are computed from
/// them.
struct ModuleView {
  EntityHistogram Histogram;
  ModuleCounts Counts;
};

/// Only one thread at a time may use an object.
class Observation {
public:
  /// Creates an observation with the given features. \p Features is a list of
  /// names, such as "histogram,step". \p VocabularyFile is the vocabulary file
  /// for `embedding`. Returns InvalidArgument if a name is unknown, or if \p
  /// Features contains `embedding` and \p VocabularyFile is empty. Otherwise,
  /// returns the errors of EmbeddingVocabulary::load().
  static Expected<Observation> create(llvm::StringRef Features,
                                      std::size_t NumActions,
                                      llvm::StringRef VocabularyFile,
                                      EmbeddingOptions Options);

  /// True if write() needs the histogram of the module.
  bool needsHistogram() const { return Histogram || Vocabulary; }
  EmbeddingKind kind() const { return Options.Kind; }
  const EmbeddingVocabulary *vocabulary() const {
    return Vocabulary ? &*Vocabulary : nullptr;
  }

  /// Writes the features of \p Module after the actions \p Taken to \p Into.
  /// The features borrow this object's memory, which is valid until the next
  /// call.
  void write(const ModuleView &Module, llvm::ArrayRef<std::uint16_t> Taken,
             FeatureSet &Into);

private:
  Observation() = default;

  bool Histogram = false, Counts = false, Step = false, Actions = false;
  std::optional<EmbeddingVocabulary> Vocabulary;
  EmbeddingOptions Options;
  std::size_t NumActions = 0;

  std::vector<float> HistogramValues, EmbeddingValues, CountValues,
      ActionValues;
  float StepValue = 0;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_OBSERVATION_H
