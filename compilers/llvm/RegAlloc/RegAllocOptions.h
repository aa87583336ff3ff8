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
#include "RegAlloc/AllocationReward.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <chrono>
#include <string>
#include <vector>

namespace MLBridge {

/// Policies that are not learned: baselines and tests.
enum class FixedPolicy {
  None,             ///< LLVM's greedy allocator allocates everything.
  WeightOrder,      ///< makeWeightOrder()
  FreeColours,      ///< makeFreeColours(). Greedy allocates the rest.
  EvictionByWeight, ///< Greedy with EvictionBy::Weight.
  PriorityBySize,   ///< Greedy with PriorityBy::Size.
  Random,           ///< makeRandomPolicy()
};

/// How a model allocates a function.
enum class AllocatorForm {
  Question, ///< One request, whose reply has preferences for each live range.
  Dialogue, ///< A request for each decision of four agents.
};

/// The models and policies that decide about the registers of a function.
struct PolicyDescription {
  /// The name in messages and in files.
  std::string Name;
  FixedPolicy Fixed = FixedPolicy::None;
  /// The specs of the models that replace greedy's advisors. Empty if LLVM's
  /// own advisors decide.
  std::string Eviction, Priority;
  /// The spec of the model that allocates before greedy, or empty.
  std::string Allocator;
  AllocatorForm Form = AllocatorForm::Question;

  /// True if LLVM's greedy allocator decides everything.
  bool isGreedy() const {
    return Fixed == FixedPolicy::None && Eviction.empty() && Priority.empty() &&
           Allocator.empty();
  }
};

/// Returns the policies that are not learned and can be searched. The first is
/// greedy.
llvm::ArrayRef<PolicyDescription> fixedPolicies();
/// Returns the policy of the options `-mlbridge-regalloc=SPEC`,
/// `-mlbridge-regalloc-policy=NAME`, `-mlbridge-eviction=SPEC` and
/// `-mlbridge-priority=SPEC`.
PolicyDescription givenPolicy();
/// Returns the values of `-mlbridge-regalloc-try=POLICY`: further policies for
/// the search.
std::vector<PolicyDescription> triedPolicies();
/// Returns the values of `-mlbridge-regalloc-seed` and of the options
/// `-mlbridge-regalloc-random-*`.
RandomPolicyOptions randomPolicyOptions();

/// Returns the value of `-mlbridge-regalloc-search=K`: the number of policies
/// to try on each function. 0 means that functions are not searched.
unsigned allocationSearch();
/// Returns the value of `-mlbridge-regalloc-search-budget=MS`: the time limit
/// for the trials in a module. 0 means no limit.
std::chrono::milliseconds allocationSearchBudget();
/// Returns the value of `-mlbridge-regalloc-search-trial-limit=MS`: the time
/// limit for one trial, at least 1 ms.
std::chrono::milliseconds allocationTrialLimit();
/// True if `-mlbridge-regalloc-search-all` was given: policies are tried even
/// if a prediction excludes them.
bool triesAllPolicies();

/// Returns the value of `-mlbridge-regalloc-functions=FOLDER`, the bitcode
/// files whose functions a trainer allocates.
llvm::StringRef allocationFunctions();
/// Returns the value of `-mlbridge-regalloc-max-ranges=N`: a trainer does not
/// allocate functions with more live ranges. 0 means no limit.
unsigned allocationMaxRanges();
/// Returns the value of `-mlbridge-regalloc-repeats=N`: the number of episodes
/// with each function, one after another.
unsigned allocationRepeats();

/// Returns the value of `-mlbridge-regalloc-reward=cost|cycles`.
AllocationMeasure allocationMeasure();

/// True if the options can replace an advisor of greedy in some function.
bool replacesAdvisors();

/// Returns the value of `-mlbridge-regalloc-vocabulary=FILE`, the vocabulary of
/// MIR2Vec. Empty if the option was not given.
llvm::StringRef allocationVocabulary();
/// Returns the value of `-mlbridge-mir2vec-triplets=FILE`, the file to which
/// the triplets of MIR2Vec are appended. Empty if the option was not given.
llvm::StringRef tripletsFile();
/// Returns the value of `-mlbridge-regalloc-costs=FILE`, the file to which a
/// line of JSON for each function is appended. Empty if the option was not
/// given.
llvm::StringRef allocationCostsFile();

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_REGALLOCOPTIONS_H
