//===- RegAllocOptions.h - Options of register allocation -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Functions that return the values of the options whose names start with
/// `-mlbridge-regalloc`.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_REGALLOCOPTIONS_H
#define MLBRIDGE_LLVM_REGALLOC_REGALLOCOPTIONS_H

#include "RegAlloc/AllocationPolicy.h"

#include "llvm/ADT/StringRef.h"

namespace MLBridge {

/// Policies that are not learned: baselines and tests.
enum class FixedPolicy {
  None,        ///< LLVM's greedy allocator allocates everything.
  WeightOrder, ///< makeWeightOrder()
  Random,      ///< makeRandomPolicy()
};

/// Returns the value of `-mlbridge-regalloc-policy=none|weight|random`.
FixedPolicy fixedPolicy();
/// Returns the values of `-mlbridge-regalloc-seed` and of the options
/// `-mlbridge-regalloc-random-*`.
RandomPolicyOptions randomPolicyOptions();

/// Returns the value of `-mlbridge-regalloc-costs=FILE`, the file to which a
/// line of JSON for each function is appended. Empty if the option was not
/// given.
llvm::StringRef allocationCostsFile();

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_REGALLOCOPTIONS_H
