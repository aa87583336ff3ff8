//===- Reward.h - The reward of phase ordering ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RewardFunction selects the measures of a module and computes the reward of a
/// step. As in the POSET-RL paper, the reward is a weighted sum of the
/// measures' relative changes.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_REWARD_H
#define MLBRIDGE_LLVM_PHASEORDERING_REWARD_H

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace MLBridge {

/// The measures of a module. For all of them, smaller is better.
struct Measurements {
  std::uint64_t Instructions = 0;
  std::optional<std::uint64_t> TextSize;
  /// The result of machineCycles().
  std::optional<double> Cycles;
  /// The result of weightedCycles().
  std::optional<double> WeightedCycles;
};

class RewardFunction {
public:
  enum class Measure : std::uint8_t {
    TextSize,
    Instructions,
    Cycles,
    WeightedCycles
  };

  /// Parses a reward function such as `text-size:10,mca-cycles:5`. The text is
  /// `none`, or a list of the measures text-size, instructions, mca-cycles and
  /// weighted-cycles. Each measure can have a weight, which is 1 by default. A
  /// measure with weight 0 is measured but does not change the reward. Returns
  /// InvalidArgument for any other text.
  static Expected<RewardFunction> parse(llvm::StringRef Text);

  bool isNone() const { return Terms.empty(); }
  bool needs(Measure What) const;
  bool needsObject() const {
    return needs(Measure::TextSize) || needs(Measure::Cycles) ||
           needs(Measure::WeightedCycles);
  }

  /// Returns the value of \p State. Each measure is divided by the same measure
  /// of \p Reference, and the value is minus the weighted sum of these ratios.
  /// The reward of a step is the change in value. Both arguments must contain
  /// the required measures.
  double value(const Measurements &State, const Measurements &Reference) const;

private:
  struct Term {
    Measure What;
    double Weight;
  };
  std::vector<Term> Terms;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_REWARD_H
