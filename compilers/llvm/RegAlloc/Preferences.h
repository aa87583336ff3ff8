//===- Preferences.h - A reply about all live ranges ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Preferences are a model's reply if it receives one request for each
/// function. makePreferences() makes all decisions from them.
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

/// A model's preferences for each live range. If a range is split, its parts
/// keep its preferences. Each vector may be empty.
struct Preferences {
  /// The columns of the tensor `logits`. LeaveToGreedy, SplitRange and
  /// SpillRange have the same effect as a positive number in Leave, Split and
  /// Spill.
  enum Choice : std::size_t { Colour, LeaveToGreedy, SplitRange, SpillRange };
  static constexpr std::size_t Choices = 4;

  /// Reads the tensors `priority`, `value`, `leave`, `split` and `spill`, float
  /// [\p Ranges] each. All are optional. Alternatively, reads `logits`, float
  /// [\p Ranges, 4], and selects the choice with the highest score for each
  /// range. Returns SchemaMismatch if all these tensors are missing, if one has
  /// another number of elements, or if `logits` has another shape. Returns
  /// Model if an element is not finite.
  static Expected<Preferences> from(const Advice &Reply, std::size_t Ranges);

  /// The range with the highest priority is allocated first. If empty, the
  /// priorities are the spill weights.
  std::vector<float> Priority;
  /// A range can evict ranges with a lower value. If empty, the values are the
  /// spill weights.
  std::vector<float> Value;
  /// A positive element leaves its range to greedy. If empty, all are 0.
  std::vector<float> Leave;
  /// The treatment of a range that finds no register. It is split if Split is
  /// positive and a split is possible. Otherwise, it is spilled if Spill is
  /// positive, and else left to greedy. If empty, all elements are 0.
  std::vector<float> Split, Spill;
};

/// Returns a policy that decides according to \p Given, which has a value for
/// each row of \p Observation. All arguments must outlive the policy.
std::unique_ptr<AllocationPolicy>
makePreferences(const AllocationContext &Context,
                const AllocationObservation &Observation,
                const Preferences &Given);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_PREFERENCES_H
