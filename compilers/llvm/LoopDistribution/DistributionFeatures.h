//===- DistributionFeatures.h - What a distribution would do ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// DistributionFeatures describes a planned distribution to a model: how much
/// of it can be vectorized, what must be computed twice, and how many cycles an
/// iteration takes by LLVM's cost model.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_DISTRIBUTIONFEATURES_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_DISTRIBUTIONFEATURES_H

#include "LoopDistribution/DistributionPlan.h"

#include <array>

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

/// Describes loops of one graph.
class DistributionDescriber {
public:
  /// The arguments must outlive the describer.
  DistributionDescriber(const DependenceGraph &Graph,
                        const LoopAnalyses &Analyses);

  /// Returns the columns of a plan for the graph's loop.
  std::array<float, DistributionColumns>
  describe(const DistributionPlan &Plan) const;

private:
  struct Cost {
    double Scalar = 0, Vector = 0;
  };
  using Contents = llvm::SmallPtrSetImpl<llvm::Instruction *>;

  bool canVectorize(const Contents &Loop) const;

  const DependenceGraph &Graph;
  /// All instructions of the loop.
  llvm::SmallPtrSet<llvm::Instruction *, 32> All;
  /// Phis that prevent vectors.
  llvm::SmallPtrSet<const llvm::Instruction *, 8> Preventing;
  llvm::DenseMap<const llvm::Instruction *, Cost> Costs;
  /// The latency of each node that is a recurrence.
  std::vector<double> Latencies;
  unsigned Width = 1;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_DISTRIBUTIONFEATURES_H
