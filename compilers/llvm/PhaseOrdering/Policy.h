//===- Policy.h - What a model makes of an observation ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PhaseOrderingPolicy: asks a model for the next action.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_POLICY_H
#define MLBRIDGE_LLVM_PHASEORDERING_POLICY_H

#include "PhaseOrdering/Observation.h"

#include "MLCompilerBridge/MLModelRunner.h"

namespace MLBridge {

/// Used by one thread at a time.
class PhaseOrderingPolicy {
public:
  struct Reply {
    /// The best action, of equals the first. One past the last of the action
    /// space's is to stop.
    std::size_t Action = 0;
    /// What the model thinks of each; empty where it has decided itself.
    std::vector<float> Values;
  };

  /// \p NumChoices is the number of actions, to stop among them. All of these
  /// outlive it.
  PhaseOrderingPolicy(MLModelRunner &Runner, Observation &Features,
                      std::size_t NumChoices)
      : Runner(Runner), Features(Features), NumChoices(NumChoices) {}

  /// Asks about a module that \p Taken has led to. The answer is an integer, or
  /// numbers, one a choice: the only output, or the one called `action`,
  /// `logits` or `values`. SchemaMismatch for anything else; Deferred, where
  /// the rest is left to LLVM.
  Expected<Reply> ask(const ModuleView &Module,
                      llvm::ArrayRef<std::uint16_t> Taken);
  /// Asks what the state that \p Taken has led to is worth; the answer is one
  /// number, the only output or the one called `value`. Errors as of ask().
  Expected<float> value(const ModuleView &Module,
                        llvm::ArrayRef<std::uint16_t> Taken);
  /// Tells the runner what was done in the end.
  Error tell(std::size_t Action);

  /// How often it was asked.
  unsigned asked() const { return Asked; }

private:
  Error mismatch(const std::string &Why) const;
  /// What the model says of a state: the output of the first of these names, or
  /// the only one. It lives until the next request.
  Expected<const TensorView *> consult(const ModuleView &Module,
                                       llvm::ArrayRef<std::uint16_t> Taken,
                                       llvm::ArrayRef<const char *> Names);
  Expected<Reply> read(const TensorView &Output) const;

  MLModelRunner &Runner;
  Observation &Features;
  const std::size_t NumChoices;
  FeatureSet Request;
  unsigned Asked = 0;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_POLICY_H
