//===- Reward.h - The reward of phase ordering ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RewardFunction: selects the measures of a module and computes the reward of
/// a step from them: a weighted sum of relative changes, as in the POSET-RL
/// paper.
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

/// Measures of a module; smaller is better.
struct Measurements {
  std::uint64_t Instructions = 0;
  std::optional<std::uint64_t> TextSize;
  std::optional<double> Cycles;
};

class RewardFunction {
public:
  enum class Measure : std::uint8_t { TextSize, Instructions, Cycles };

  /// Parses `text-size:10,mca-cycles:5`: the measures text-size, instructions
  /// and mca-cycles, each with its weight (default 1; 0: measured but without
  /// reward), or `none`. InvalidArgument for anything else.
  static Expected<RewardFunction> parse(llvm::StringRef Text);

  bool isNone() const { return Terms.empty(); }
  /// True if \p What has to be measured.
  bool needs(Measure What) const;
  /// True if machine code has to be generated.
  bool needsObject() const {
    return needs(Measure::TextSize) || needs(Measure::Cycles);
  }

  /// The value of \p State: minus the weighted sum of its measures relative to
  /// those of \p Reference. The reward of a step is the change in value. Both
  /// arguments must contain the required measures.
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
