//===- Observation.cpp - The features of an episode -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Converts the state of an episode to feature tensors.
///
//===----------------------------------------------------------------------===//

#include "PhaseOrdering/Observation.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace MLBridge {

Expected<Observation> Observation::create(StringRef Features,
                                          std::size_t NumActions,
                                          StringRef VocabularyFile,
                                          EmbeddingOptions Options) {
  Observation Result;
  Result.Options = Options;
  Result.NumActions = NumActions;
  bool Embedding = false;
  SmallVector<StringRef> Names;
  Features.split(Names, ',');
  for (StringRef Name : Names) {
    bool *Wanted = StringSwitch<bool *>(Name)
                       .Case("histogram", &Result.Histogram)
                       .Case("embedding", &Embedding)
                       .Case("counts", &Result.Counts)
                       .Case("step", &Result.Step)
                       .Case("actions", &Result.Actions)
                       .Default(nullptr);
    if (!Wanted || *Wanted)
      return Error(ErrorCode::InvalidArgument,
                   ("observation '" + Features +
                    "': expected a list of histogram, embedding, counts, step "
                    "and actions, found '" +
                    Name + "'" + (Wanted ? " again" : ""))
                       .str());
    *Wanted = true;
  }
  if (Embedding) {
    if (VocabularyFile.empty())
      return Error(ErrorCode::InvalidArgument,
                   "observation 'embedding': expected a vocabulary "
                   "(-mlbridge-ir2vec-vocabulary=FILE), found none");
    Expected<EmbeddingVocabulary> Loaded =
        EmbeddingVocabulary::load(VocabularyFile);
    if (!Loaded)
      return Loaded.takeError();
    Result.Vocabulary = std::move(*Loaded);
  }
  return Result;
}

void Observation::write(const ModuleView &Module, ArrayRef<std::uint16_t> Taken,
                        FeatureSet &Into) {
  auto View = [](const std::vector<float> &Values) {
    return Span<const float>(Values);
  };
  if (Histogram) {
    HistogramValues.assign(Module.Histogram.counts().begin(),
                           Module.Histogram.counts().end());
    Into.set("histogram", View(HistogramValues));
  }
  if (Vocabulary) {
    EmbeddingValues.resize(Vocabulary->dimension());
    Vocabulary->embed(Module.Histogram, Options.Normalize, EmbeddingValues);
    Into.set("embedding", View(EmbeddingValues));
  }
  if (Counts) {
    CountValues.assign(Module.Counts.values().begin(),
                       Module.Counts.values().end());
    Into.set("counts", View(CountValues));
  }
  if (Step) {
    StepValue = static_cast<float>(Taken.size());
    Into.set("step", Span<const float>(&StepValue, 1));
  }
  if (Actions) {
    ActionValues.assign(2 * NumActions, 0);
    for (std::uint16_t Action : Taken)
      ++ActionValues[Action];
    if (!Taken.empty())
      ActionValues[NumActions + Taken.back()] = 1;
    Into.set("actions", View(ActionValues));
  }
}

} // namespace MLBridge
