//===- FactorCandidates.h - What factors would do ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FactorCandidates lists and describes the factors of a loop, so that a model
/// can choose one.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_FACTORCANDIDATES_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_FACTORCANDIDATES_H

#include "LoopDistribution/LoopFactors.h"

#include "MLCompilerBridge/FeatureSet.h"

#include <cstdint>
#include <vector>

namespace MLBridge {

/// The columns of `factor_features`. Numbers are logarithms, log(1 + n).
enum class FactorColumn : std::size_t {
  Throughput,   ///< The estimated cycles of an iteration.
  Recurrence,   ///< The cycles of an iteration in the slowest recurrence.
  Cycles,       ///< The larger one of these, on average over the iterations.
  Instructions, ///< The number of instructions in the loop body.
  Iterations,   ///< The number of iterations of the new loop, if known.
  Remainder,    ///< The share of the iterations that remain, if known.
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
  /// - `choices` int32 [c, 3]: width, interleave and unroll of factorChoices().
  /// - `factor_features` float [c, 6]: the FactorColumns. The first row is an
  ///   estimate of what LLVM chooses.
  /// - `action_mask` float [c]: 1 where a choice is legal.
  void setFeatures(FeatureSet &Into) const;

private:
  llvm::ArrayRef<float> Legal;
  std::vector<std::int32_t> Choices;
  std::vector<float> Described;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_FACTORCANDIDATES_H
