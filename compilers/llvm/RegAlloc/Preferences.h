//===- Preferences.h - A reply about all live ranges ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Preferences are the reply of a model that is asked once about a function.
/// makePreferences() makes all decisions from them.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_PREFERENCES_H
#define MLBRIDGE_LLVM_REGALLOC_PREFERENCES_H

#include "RegAlloc/AllocationPolicy.h"

#include "MLCompilerBridge/Advice.h"

#include <memory>
#include <vector>

namespace MLBridge {

struct AllocationContext;
class AllocationObservation;

/// What a model prefers for each live range. The parts of a range that was
/// split keep its preferences. Each vector may be empty.
struct Preferences {
  /// The columns of the tensor `logits`. LeaveToGreedy, SplitRange and
  /// SpillRange mean the same as a positive number in Leave, Split and Spill.
  enum Choice : std::size_t { Colour, LeaveToGreedy, SplitRange, SpillRange };
  static constexpr std::size_t Choices = 4;

  /// Reads the tensors `priority`, `value`, `leave`, `split` and `spill`, float
  /// [\p Ranges] each. All are optional. Alternatively, reads `logits`, float
  /// [\p Ranges, 4], and takes the choice with the highest score for each
  /// range. Returns SchemaMismatch if there is none of these tensors, or if one
  /// has another number of elements, and Model if an element is not finite.
  static Expected<Preferences> from(const Advice &Reply, std::size_t Ranges);

  /// The range with the highest priority is allocated first. If empty, this is
  /// the range with the highest spill weight.
  std::vector<float> Priority;
  /// A range can take the registers of ranges with a lower value. If empty, the
  /// value is the spill weight.
  std::vector<float> Value;
  /// If positive, the range is left to greedy. Empty if all elements are 0.
  std::vector<float> Leave;
  /// What happens to a range that finds no register: it is split if Split is
  /// positive and a split is possible, else spilled if Spill is positive, else
  /// left to greedy. Empty if all elements are 0.
  std::vector<float> Split, Spill;
};

/// Decides by \p Given, which has a value for each row of \p Observation. All
/// arguments must outlive the policy.
std::unique_ptr<AllocationPolicy>
makePreferences(const AllocationContext &Context,
                const AllocationObservation &Observation,
                const Preferences &Given);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_PREFERENCES_H
