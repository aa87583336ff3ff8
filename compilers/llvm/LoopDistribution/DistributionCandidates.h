//===- DistributionCandidates.h - The legal distributions -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// DistributionCandidates lists the legal distributions of a loop, so that a
/// model can choose one. It describes for each how much of it can be
/// vectorized, what must be computed twice, and how many cycles an iteration
/// takes by LLVM's cost model.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_DISTRIBUTIONCANDIDATES_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_DISTRIBUTIONCANDIDATES_H

#include "LoopDistribution/DistributionPlan.h"

#include "MLCompilerBridge/FeatureSet.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace MLBridge {

/// The columns of `distribution_features`. Counts are logarithms, log(1 + n).
enum class DistributionColumn : std::size_t {
  Loops,        ///< The number of loops.
  Vector,       ///< The number of loops that can be vectorized.
  VectorShare,  ///< The share of the stores that are in such loops.
  Instructions, ///< The number of instructions in all loops.
  Loads,        ///< The number of loads in all loops.
  Repeated,     ///< Instructions in all loops relative to the original loop.
  Reloads,      ///< Values that a later loop loads from where they are stored.
  Arrays,       ///< Values that need an array.
  Scalar,       ///< The estimated cycles of an iteration without vectors.
  Cycles,       ///< The estimated cycles of an iteration.
  Latency,      ///< The estimated cycles of the slowest recurrence.
};
inline constexpr std::size_t DistributionColumns =
    std::size_t(DistributionColumn::Latency) + 1;

class DistributionCandidates {
public:
  DistributionCandidates(const DependenceGraph &Graph,
                         const LoopAnalyses &Analyses);

  std::size_t size() const { return Partitions.size() / Nodes; }
  /// Returns a candidate as an argument of DistributionPlan::make(), or
  /// std::nullopt if \p Index is not below size().
  std::optional<std::vector<std::int64_t>> at(std::int64_t Index) const;

  /// Sets the features. \p Into borrows them from this object:
  ///
  /// - `distributions` int32 [c, n]: a loop for each node; only seeds count.
  /// - `distribution_features` float [c, 11]: the DistributionColumns.
  void setFeatures(FeatureSet &Into) const;

private:
  std::size_t Nodes;
  std::vector<std::int32_t> Partitions;
  std::vector<float> Described;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_DISTRIBUTIONCANDIDATES_H
