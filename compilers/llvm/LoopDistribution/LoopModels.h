//===- LoopModels.h - Models that decide about loops ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// LoopModels is the policy whose decisions models make: one model distributes
/// loops, another one chooses factors. All models receive the features of
/// LoopObservation: n nodes, m edges and s seeds. Further features and the
/// advice are:
///
/// - **Distribution, as a question**: the features of DistributionCandidates.
///   The advice is `int64[1]`, the index of a candidate, or `int64[n]`, an
///   argument of DistributionPlan::make().
/// - **Distribution, in a dialogue**: the agents place one seed after another.
///   `loop_of` int32 [n] is the loop of each placed node, or -1. `action_mask`
///   float [choices] is 1 where a choice is legal. The agent `node` chooses the
///   next seed, an index of `seeds`. The agent `partition` also receives this
///   seed's `node` int32, and replies 0 for the current loop or 1 for a new
///   one. It is not asked about the first seed, which begins the first loop.
/// - **Factors**: the features of FactorCandidates. The advice is `int64[1]`,
///   an index of `choices` that `action_mask` allows.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPMODELS_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPMODELS_H

#include "IR2Vec/EmbeddingVocabulary.h"
#include "LoopDistribution/LoopPolicy.h"
#include "ModelSession.h"

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
  /// A model, and what it has been asked.
  struct Model {
    std::unique_ptr<ModelSession> Session;
    std::chrono::steady_clock::duration Replying{};

    bool decides() const { return Session && !Session->hasFailed(); }
  };

  LoopModels(const LoopOptions &Options, llvm::Module &M)
      : Form(Options.Form), M(M) {}
  /// Sends Features. Returns std::nullopt if the model defers or fails.
  template <typename T> std::optional<T> request(Model &Asked);
  /// Fails because a reply is wrong. The message also names the model.
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
