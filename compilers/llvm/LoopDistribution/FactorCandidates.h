//===- FactorCandidates.h - The effects of factors --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FactorCandidates describes the effect of each of factorChoices() on a loop,
/// so that a model can choose one.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_FACTORCANDIDATES_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_FACTORCANDIDATES_H

#include "LoopDistribution/LoopFactors.h"

#include "MLCompilerBridge/FeatureSet.h"

#include <cstdint>
#include <vector>

namespace MLBridge {

/// The columns of `factor_features`. All columns except Remainder are
/// logarithms, log(1 + n).
enum class FactorColumn : std::size_t {
  Throughput,   ///< Estimated cycles per iteration, without latencies.
  Recurrence,   ///< Latency of the slowest recurrence, in cycles per iteration.
  Cycles,       ///< The larger of these two, averaged over all iterations.
  Instructions, ///< The number of instructions in the loop body.
  Iterations,   ///< The number of iterations of the new loop. 0 if unknown.
  Remainder,    ///< The share of iterations after the new loop. 0 if unknown.
};
inline constexpr std::size_t FactorColumns =
    std::size_t(FactorColumn::Remainder) + 1;

class FactorCandidates {
public:
  /// \p Legal is the result of legalFactors(), and must outlive this object.
  FactorCandidates(const DependenceGraph &Graph, const LoopAnalyses &Analyses,
                   llvm::ArrayRef<float> Legal);

  /// Sets the features. \p Into borrows them from this object:
  ///
  /// - `choices` int32 [c, 3]: the width, interleave and unroll factors.
  /// - `factor_features` float [c, 6]: the FactorColumns. The first row
  ///   describes the factors that LLVM probably chooses.
  /// - `action_mask` float [c]: 1 where a choice is legal.
  void setFeatures(FeatureSet &Into) const;

private:
  llvm::ArrayRef<float> Legal;
  std::vector<std::int32_t> Choices;
  std::vector<float> Described;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_FACTORCANDIDATES_H
