//===- Search.h - Searches for the best sequence ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A search over sequences of actions, guided by a policy: the best sequence is
/// known only after generating code.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_SEARCH_H
#define MLBRIDGE_LLVM_PHASEORDERING_SEARCH_H

#include "PhaseOrdering/PhaseOrderingOptions.h"
#include "PhaseOrdering/Policy.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace MLBridge {

struct SearchResult {
  /// The sequence with the smallest code; empty if LLVM's own pipeline is best.
  std::optional<ActionSequence> Sequence;
  std::uint64_t TextSize = 0;
  std::uint64_t StockTextSize = 0;
  /// The number of sequences tried.
  unsigned Rollouts = 0;
  /// The number of sequences without code, because a pass produced invalid IR
  /// or the IR cannot be compiled.
  unsigned Failures = 0;
};

/// The result of an action on a module.
using Outcome = llvm::function_ref<Expected<ModuleView>(std::uint16_t)>;

/// Tries the first \p Count actions and returns the one whose result the policy
/// values most; the first of equals. Failed actions are skipped. Errors: the
/// model's, or that of the first action if all have failed.
Expected<std::uint16_t> lookAhead(Outcome Of, unsigned Count,
                                  PhaseOrderingPolicy &Policy);

/// Tries up to \p How.Rollouts sequences on \p Of, whose reward must include
/// the text size, and LLVM's own pipeline. If an episode is one action, the
/// sequences are those that the policy values most, or with lookahead the
/// action found that way, followed by the space's actions in order. Otherwise
/// the first sequence is the policy's choice, and the others are sampled from
/// the softmax of its values; a policy without values yields one sequence. Of
/// equal results, the first is kept, and LLVM's pipeline precedes all. Errors:
/// the model's; those of LLVM's own pipeline; that of the first sequence if all
/// have failed.
Expected<SearchResult> search(Program &Of, PhaseOrderingPolicy &Policy,
                              const PhaseOrderingSettings &Settings,
                              const SearchOptions &How);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_SEARCH_H
