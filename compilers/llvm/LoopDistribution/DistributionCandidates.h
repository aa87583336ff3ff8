//===- DistributionCandidates.h - The legal distributions -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// DistributionCandidates lists and describes the legal distributions of a
/// loop, so that a model can choose one.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_DISTRIBUTIONCANDIDATES_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_DISTRIBUTIONCANDIDATES_H

#include "LoopDistribution/DistributionFeatures.h"
#include "LoopDistribution/DistributionPlan.h"

#include "MLCompilerBridge/FeatureSet.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace MLBridge {

class DistributionCandidates {
public:
  DistributionCandidates(const DependenceGraph &Graph,
                         const LoopAnalyses &Analyses)
      : Nodes(Graph.nodes().size()) {
    const DistributionDescriber Describer(Graph, Analyses);
    for (const DistributionPlan &Plan : legalPlans(Graph, Analyses)) {
      for (std::int64_t Loop : Plan.partition())
        Partitions.push_back(std::int32_t(Loop));
      const auto Row = Describer.describe(Plan);
      Described.insert(Described.end(), Row.begin(), Row.end());
    }
  }

  std::size_t size() const { return Partitions.size() / Nodes; }
  /// Returns a candidate as an argument of DistributionPlan::make(), or
  /// std::nullopt if \p Index is not below size().
  std::optional<std::vector<std::int64_t>> at(std::int64_t Index) const {
    if (Index < 0 || std::uint64_t(Index) >= size())
      return std::nullopt;
    const auto Begin =
        Partitions.begin() + std::ptrdiff_t(Index) * std::ptrdiff_t(Nodes);
    return std::vector<std::int64_t>(Begin, Begin + std::ptrdiff_t(Nodes));
  }

  /// Sets the features. \p Into borrows them from this object:
  ///
  /// - `distributions` int32 [c, n]: a loop for each node; only seeds count.
  /// - `distribution_features` float [c, 11]: the DistributionColumns.
  void setFeatures(FeatureSet &Into) const {
    const auto Count = std::int64_t(size());
    Into.set("distributions",
             TensorRef(Partitions, {Count, std::int64_t(Nodes)}));
    Into.set("distribution_features",
             TensorRef(Described, {Count, std::int64_t(DistributionColumns)}));
  }

private:
  std::size_t Nodes;
  std::vector<std::int32_t> Partitions;
  std::vector<float> Described;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_DISTRIBUTIONCANDIDATES_H
