//===- Search.h - Searches for the best sequence ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A search for the best sequence of actions. The policy proposes sequences.
/// The search generates the code of each sequence, because the size of the code
/// is not known earlier.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_SEARCH_H
#define MLBRIDGE_LLVM_PHASEORDERING_SEARCH_H

#include "PhaseOrdering/PhaseOrderingOptions.h"
#include "PhaseOrdering/Policy.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace MLBridge {

struct SearchResult {
  /// The sequence with the smallest code, or empty if LLVM's own pipeline is
  /// best.
  std::optional<ActionSequence> Sequence;
  std::uint64_t TextSize = 0;
  std::uint64_t StockTextSize = 0;
  /// The number of sequences that were tried.
  unsigned Rollouts = 0;
  /// The number of sequences that failed, because a pass produced invalid IR or
  /// the IR could not be compiled.
  unsigned Failures = 0;
};

/// A function that returns the module's state after the given action.
using Outcome = llvm::function_ref<Expected<ModuleView>(std::uint16_t)>;

/// Tries the first \p Count actions and returns the action whose result gets
/// the highest score from the policy. If several actions have this score,
/// returns the first one. Failed actions are skipped. Returns the model's error
/// if the model fails, or the first action's error if all actions fail.
Expected<std::uint16_t> lookAhead(Outcome Of, unsigned Count,
                                  PhaseOrderingPolicy &Policy);

/// Tries LLVM's own pipeline and up to \p How.Rollouts sequences on \p Of, and
/// returns the best result. The reward of \p Of must include the text size. The
/// order of the sequences depends on the length of an episode:
///
/// - If an episode is one action, actions are tried in the order of the
///   policy's scores. With lookahead, the action that lookAhead() returns is
///   tried first, and then the other actions in the order of the space.
/// - If an episode has several actions, the first sequence is the policy's
///   choice. Each further sequence is sampled from the softmax of the policy's
///   scores.
///
/// If the policy replies with the index of an action instead of scores, only
/// one sequence is tried. If several results are equal, LLVM's own pipeline is
/// preferred, and then the first sequence. Returns the model's error if the
/// model fails, the pipeline's error if LLVM's own pipeline fails, or the first
/// sequence's error if all sequences fail.
Expected<SearchResult> search(Program &Of, PhaseOrderingPolicy &Policy,
                              const PhaseOrderingSettings &Settings,
                              const SearchOptions &How);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_SEARCH_H
