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
/// model can choose one. The features of a distribution describe which part can
/// be vectorized, how much is computed repeatedly, and how many cycles an
/// iteration needs according to LLVM's cost model.
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

/// The columns of `distribution_features`. All columns except VectorShare and
/// Repeated are logarithms, log(1 + n).
enum class DistributionColumn : std::size_t {
  Loops,        ///< The number of loops.
  Vector,       ///< The number of loops that can be vectorized.
  VectorShare,  ///< The share of stores in such loops, from 0 to 1.
  Instructions, ///< The number of instructions in all loops.
  Loads,        ///< The number of loads in all loops.
  Repeated,     ///< Instructions in all loops, per original instruction.
  Reloads,      ///< Stored values that a later loop loads again.
  Arrays,       ///< Values that need a temporary array.
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
  /// Returns the partition of the candidate \p Index (see
  /// DistributionPlan::make()), or std::nullopt if no such candidate exists.
  std::optional<std::vector<std::int64_t>> at(std::int64_t Index) const;

  /// Sets the features for c candidates and n nodes. \p Into borrows them from
  /// this object:
  ///
  /// - `distributions` int32 [c, n]: the partitions.
  /// - `distribution_features` float [c, 11]: the DistributionColumns.
  void setFeatures(FeatureSet &Into) const;

private:
  std::size_t Nodes;
  std::vector<std::int32_t> Partitions;
  std::vector<float> Described;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_DISTRIBUTIONCANDIDATES_H
