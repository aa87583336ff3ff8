//===- Reward.cpp - The reward of phase ordering --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parses the measures and computes their weighted sum.
///
//===----------------------------------------------------------------------===//

#include "PhaseOrdering/Reward.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"

#include <algorithm>
#include <cmath>

using namespace llvm;

namespace MLBridge {

Expected<RewardFunction> RewardFunction::parse(StringRef Text) {
  RewardFunction Result;
  if (Text == "none")
    return Result;
  auto Invalid = [&](StringRef Found) {
    return Error(ErrorCode::InvalidArgument,
                 (Twine("reward '") + Text +
                  "': expected 'none', or a list of text-size, instructions, "
                  "mca-cycles and weighted-cycles, each with a weight such as "
                  "text-size:10, found '" +
                  Found + "'")
                     .str());
  };
  SmallVector<StringRef> Parts;
  Text.split(Parts, ',');
  for (StringRef Part : Parts) {
    auto [Name, Weight] = Part.split(':');
    auto What = StringSwitch<std::optional<Measure>>(Name)
                    .Case("text-size", Measure::TextSize)
                    .Case("instructions", Measure::Instructions)
                    .Case("mca-cycles", Measure::Cycles)
                    .Case("weighted-cycles", Measure::WeightedCycles)
                    .Default(std::nullopt);
    if (!What || Result.needs(*What))
      return Invalid(Part);
    Term New{*What, 1};
    if (Part.contains(':') &&
        (Weight.getAsDouble(New.Weight) || !std::isfinite(New.Weight)))
      return Invalid(Part);
    Result.Terms.push_back(New);
  }
  return Result;
}

bool RewardFunction::needs(Measure What) const {
  return any_of(Terms, [What](const Term &T) { return T.What == What; });
}

static double valueOf(RewardFunction::Measure What, const Measurements &Of) {
  switch (What) {
  case RewardFunction::Measure::TextSize:
    return static_cast<double>(Of.TextSize.value_or(0));
  case RewardFunction::Measure::Instructions:
    return static_cast<double>(Of.Instructions);
  case RewardFunction::Measure::Cycles:
    return Of.Cycles.value_or(0);
  case RewardFunction::Measure::WeightedCycles:
    return Of.WeightedCycles.value_or(0);
  }
  return 0;
}

double RewardFunction::value(const Measurements &State,
                             const Measurements &Reference) const {
  double Sum = 0;
  for (const Term &T : Terms)
    // A module without code measures 0, so avoid a division by this number.
    Sum -= T.Weight * valueOf(T.What, State) /
           std::max(valueOf(T.What, Reference), 1.0);
  return Sum;
}

} // namespace MLBridge
