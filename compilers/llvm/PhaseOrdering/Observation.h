//===- Observation.h - The features of an episode ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Observation: the features of phase ordering, selected by name; the same in
/// training and inference.
///
/// | name | | |
/// | --- | --- | --- |
/// | `histogram` | float[110] | count of each IR entity (IR2Vec) |
/// | `embedding` | float[n] | the IR2Vec embedding, by its options |
/// | `counts` | float[12] | ModuleCounts |
/// | `step` | float[1] | number of actions taken |
/// | `actions` | float[2a] | how often each of the a actions was taken, |
/// | | | then 1 at the last action |
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

/// Action numbers, in the order in which the actions were taken.
using ActionSequence = std::vector<std::uint16_t>;

/// The observable facts about a module's IR.
struct ModuleView {
  EntityHistogram Histogram;
  ModuleCounts Counts;
};

/// Used by one thread at a time.
class Observation {
public:
  /// \p Features is a list of names, such as "histogram,step"; \p
  /// VocabularyFile is the vocabulary for `embedding`. Errors: InvalidArgument
  /// for unknown names, and for embeddings without a vocabulary; those of the
  /// vocabulary.
  static Expected<Observation> create(llvm::StringRef Features,
                                      std::size_t NumActions,
                                      llvm::StringRef VocabularyFile,
                                      EmbeddingOptions Options);

  /// True if histograms are needed.
  bool needsHistogram() const { return Histogram || Vocabulary; }
  EmbeddingKind kind() const { return Options.Kind; }
  const EmbeddingVocabulary *vocabulary() const {
    return Vocabulary ? &*Vocabulary : nullptr;
  }

  /// Sets the features of a module after the actions \p Taken. They borrow
  /// memory of this object until the next call.
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
