//===- Reward.h - What phase ordering is for --------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RewardFunction: what is measured of a module, and what a step is worth by
/// it: a weighted sum of relative changes, as in the POSET-RL paper.
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

/// What is known of a module; the smaller, the better.
struct Measurements {
  std::uint64_t Instructions = 0;
  std::optional<std::uint64_t> TextSize;
  std::optional<double> Cycles;
};

class RewardFunction {
public:
  enum class Measure : std::uint8_t { TextSize, Instructions, Cycles };

  /// Reads `text-size:10,mca-cycles:5`: the measures text-size, instructions
  /// and mca-cycles, each with its weight (1 unless given; 0: it is measured
  /// and is worth nothing), or `none`. InvalidArgument for anything else.
  static Expected<RewardFunction> parse(llvm::StringRef Text);

  bool isNone() const { return Terms.empty(); }
  /// Whether \p What has to be measured.
  bool needs(Measure What) const;
  /// Whether machine code has to be made.
  bool needsObject() const {
    return needs(Measure::TextSize) || needs(Measure::Cycles);
  }

  /// How good \p State is: minus the weighted sum of each measure's share in
  /// that of \p Reference. A step is worth the difference that it made. All
  /// that is needed has been measured of both.
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
