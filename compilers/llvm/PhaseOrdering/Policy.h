//===- Policy.h - Requests the next action from a model ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PhaseOrderingPolicy: requests the next action from a model.
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
    /// The best action; the first of equals. The number after the last action
    /// of the space ends the episode.
    std::size_t Action = 0;
    /// The model's value of each action; empty if the model chose an action.
    std::vector<float> Values;
  };

  /// \p NumChoices is the number of actions, including the stop action if any.
  /// All arguments must outlive this object.
  PhaseOrderingPolicy(MLModelRunner &Runner, Observation &Features,
                      std::size_t NumChoices)
      : Runner(Runner), Features(Features), NumChoices(NumChoices) {}

  /// Requests an action for a module after the actions \p Taken. The reply is
  /// an integer, or one number for each choice: the only output, or the output
  /// `action`, `logits` or `values`. SchemaMismatch for anything else; Deferred
  /// to leave the rest to LLVM.
  Expected<Reply> ask(const ModuleView &Module,
                      llvm::ArrayRef<std::uint16_t> Taken);
  /// Requests the value of the state after the actions \p Taken. The reply is
  /// one number: the only output, or the output `value`. Errors as for ask().
  Expected<float> value(const ModuleView &Module,
                        llvm::ArrayRef<std::uint16_t> Taken);
  /// Tells the runner which action was taken.
  Error tell(std::size_t Action);

  /// The number of requests.
  unsigned asked() const { return Asked; }

private:
  Error mismatch(const std::string &Why) const;
  /// Sends a request for a state and returns the first output among these
  /// names, or the only output. Valid until the next request.
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
