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
/// loops, another one chooses factors. The features are those of
/// LoopObservation, and these:
///
/// | agent | further features | advice |
/// | --- | --- | --- |
/// | distribution, as a question | `distributions` int32 [c, n],
/// `distribution_features` float [c, 11] | `int64`, an index, or `int64[n]` |
/// | node | `loop_of` int32 [n], `action_mask` float [s] | a seed's index |
/// | partition | the same, `node` int32 | 0: same loop, 1: new loop |
/// | factors | `choices` int32 [c, 3], `factor_features` float [c, 6],
/// `action_mask` float [c] | an index |
///
/// `distributions` are legal distributions, as arguments of
/// DistributionPlan::make(); the first one leaves the loop as it is. For their
/// features, see DistributionFeatures.h and FactorCandidates.h. The advice to a
/// question is the index of a row, or a number for each node. `loop_of` is -1
/// for nodes that are not placed yet. The agents of a dialogue place seed by
/// seed. The first seed begins the first loop, so `partition` is not asked
/// about it.
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
  void refuseFactors(const Error &Why) override;
  void flush() override;

private:
  /// A model, and what it has been asked.
  struct Model {
    std::unique_ptr<ModelSession> Session;
    std::uint64_t Requests = 0, Deferred = 0, Failed = 0;
    std::chrono::steady_clock::duration Replying{};

    bool decides() const { return Session && !Session->hasFailed(); }
  };

  LoopModels(const LoopOptions &Options, llvm::Module &M)
      : Form(Options.Form), M(M) {}
  /// Sends Features. Returns std::nullopt if the model defers or fails.
  template <typename T> std::optional<T> request(Model &Asked);
  void fail(Model &Asked, const Error &Failure);
  /// Fails because a reply is wrong. The message also names the model.
  void reject(Model &Asked, const Error &Why);
  std::optional<std::vector<std::int64_t>>
  dialogue(const DependenceGraph &Graph, const LoopAnalyses &Analyses,
           const class LoopObservation &Observation);
  void printStatistics(llvm::StringRef Name, const Model &Asked) const;

  const DistributionForm Form;
  llvm::Module &M;
  Model Distribution, Factors;
  std::optional<EmbeddingVocabulary> Vocabulary;
  FeatureSet Features;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPMODELS_H
