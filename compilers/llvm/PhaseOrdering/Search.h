//===- Search.h - The best of several sequences -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A search over sequences of actions, guided by a policy: what is best is
/// known only when the code has been made.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_SEARCH_H
#define MLBRIDGE_LLVM_PHASEORDERING_SEARCH_H

#include "PhaseOrdering/PhaseOrderingOptions.h"
#include "PhaseOrdering/Policy.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace MLBridge {

struct SearchResult {
  /// With the smallest code; nothing where that is LLVM's own.
  std::optional<ActionSequence> Sequence;
  std::uint64_t TextSize = 0;
  std::uint64_t StockTextSize = 0;
  /// How many sequences were tried.
  unsigned Rollouts = 0;
  /// Of how many there is no code: what a pass made is wrong, or cannot be
  /// compiled.
  unsigned Failures = 0;
};

/// What an action makes of a module, by itself.
using Outcome = llvm::function_ref<Expected<ModuleView>(std::uint16_t)>;

/// Looks at what each of the first \p Count actions makes, and returns the one
/// whose outcome the policy values most, of equals the first. An action that
/// fails is none to take. Errors: the model's; that of the first action where
/// all have failed.
Expected<std::uint16_t> lookAhead(Outcome Of, unsigned Count,
                                  PhaseOrderingPolicy &Policy);

/// Tries up to \p How.Rollouts sequences on \p Of, whose reward has the text
/// size, and LLVM's own pipeline. Where an episode is one action, these are the
/// ones that the policy values most, or the one found by looking ahead and then
/// the space's in their order; else the first is as it decides, and the others
/// are drawn from the softmax of its values. A policy that gives no
/// values has one sequence. Of equals the first is kept, and LLVM's is before
/// all. Errors: the model's; those of LLVM's own pipeline; that of the first
/// sequence where all have failed.
Expected<SearchResult> search(Program &Of, PhaseOrderingPolicy &Policy,
                              const PhaseOrderingSettings &Settings,
                              const SearchOptions &How);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_SEARCH_H
