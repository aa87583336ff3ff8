//===- LoopModels.h - Models that decide about loops ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// LoopModels is a LoopPolicy whose decisions come from models. One model
/// distributes loops, and another model chooses factors. All models receive the
/// features of LoopObservation, for n nodes, m edges and s seeds. Further
/// features and the advice depend on the decision:
///
/// - **Distribution in one request** (DistributionForm::Question): the features
///   of DistributionCandidates. The advice is `int64[1]`, the index of a
///   candidate, or `int64[n]`, a partition (see DistributionPlan::make()).
/// - **Distribution in a dialogue**: two agents place one seed after another.
///   `loop_of` int32 [n] is the loop of each placed node, and -1 for other
///   nodes. `action_mask` float [choices] is 1 where a choice is legal. The
///   agent `node` chooses the next seed, as an index of `seeds`. The agent
///   `partition` also receives this seed's index in `nodes` as the feature
///   `node` int32. It replies 0 for the current loop or 1 for a new loop. It
///   receives no request for the first seed, which begins the first loop.
/// - **Factors**: the features of FactorCandidates. The advice is `int64[1]`,
///   an index of `choices` that `action_mask` allows.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPMODELS_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPMODELS_H

#include "IR2Vec/EmbeddingVocabulary.h"
#include "LoopDistribution/LoopPolicy.h"
#include "Support/ModelSession.h"

#include "MLCompilerBridge/FeatureSet.h"

#include <chrono>
#include <string>

namespace MLBridge {

class LoopModels final : public LoopPolicy {
public:
  /// Opens the models that \p Options name. If this fails, reports the error
  /// and returns null.
  static std::unique_ptr<LoopModels> open(const LoopOptions &Options,
                                          llvm::Module &M);
  /// Prints the statistics if -mlbridge-print-statistics was given.
  ~LoopModels() override;

  std::optional<std::vector<std::int64_t>>
  partition(const DependenceGraph &Graph,
            const LoopAnalyses &Analyses) override;
  std::optional<std::int64_t> factors(const DependenceGraph &Graph,
                                      const LoopAnalyses &Analyses,
                                      llvm::ArrayRef<float> Legal) override;
  void flush() override;

private:
  /// A model's session, and the total duration of its requests.
  struct Model {
    std::unique_ptr<ModelSession> Session;
    std::chrono::steady_clock::duration Replying{};

    bool decides() const { return Session && !Session->hasFailed(); }
  };

  LoopModels(const LoopOptions &Options, llvm::Module &M)
      : Form(Options.Form), M(M) {}
  /// Sends Features. Returns std::nullopt if the model defers or fails.
  template <typename T> std::optional<T> request(Model &Asked);
  /// Makes the session of \p Asked fail because a reply is wrong. Adds the
  /// model's name to the message.
  void reject(Model &Asked, const Error &Why);
  std::optional<std::vector<std::int64_t>>
  dialogue(const DependenceGraph &Graph, const LoopAnalyses &Analyses,
           const class LoopObservation &Observation);
  static void printStatistics(const Model &Asked);

  const DistributionForm Form;
  llvm::Module &M;
  Model Distribution, Factors;
  std::optional<EmbeddingVocabulary> Vocabulary;
  FeatureSet Features;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPMODELS_H
