//===- LoopOptions.h - The options of loop distribution ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Functions that return the values of the options of loop distribution and of
/// loop factors.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPOPTIONS_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPOPTIONS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace MLBridge {

/// The names of the two optimisations, in options, remarks and messages.
inline constexpr char LoopDistributionName[] = "mlbridge-loop-distribution";
inline constexpr char LoopFactorsName[] = "mlbridge-loop-factors";

/// The part of a distribution that a model decides in one request.
enum class DistributionForm {
  Question, ///< The whole distribution of a loop.
  Dialogue, ///< One step of a dialogue with two agents.
};

/// Decisions that are the same for all loops, for tests and measurements.
struct FixedLoopDecisions {
  /// For each seed, the number of its loop. Applies only to loops that have
  /// Partition.size() seeds.
  std::vector<std::int64_t> Partition;
  /// An index in factorChoices().
  std::optional<unsigned> Factors;
  /// If set, only the loop with this number is changed. Loops are numbered from
  /// 0, separately for distribution and for factors.
  std::optional<unsigned> OnlyLoop;
};

struct LoopOptions {
  /// The value of `-mlbridge-loop-distribution=SPEC`, or an empty string.
  llvm::StringRef DistributionSpec;
  /// The value of `-mlbridge-loop-factors=SPEC`, or an empty string.
  llvm::StringRef FactorsSpec;
  DistributionForm Form = DistributionForm::Question;
  FixedLoopDecisions Fixed;
  std::optional<unsigned> RandomSeed;
  /// True if loops are printed before vectorization, as JSON.
  bool Print = false;

  bool distributes() const {
    return !DistributionSpec.empty() || !Fixed.Partition.empty() || RandomSeed;
  }
  bool setsFactors() const {
    return !FactorsSpec.empty() || Fixed.Factors || RandomSeed;
  }
};

/// Returns the options of the command line.
LoopOptions loopOptions();

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPOPTIONS_H
