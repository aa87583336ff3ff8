//===- Policy.h - Requests the next action from a model ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PhaseOrderingPolicy requests the next action from a model.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_POLICY_H
#define MLBRIDGE_LLVM_PHASEORDERING_POLICY_H

#include "PhaseOrdering/Observation.h"

#include "MLCompilerBridge/MLModelRunner.h"

namespace MLBridge {

/// Only one thread at a time may use an object.
class PhaseOrderingPolicy {
public:
  struct Reply {
    /// The index of the chosen action. If several actions have the highest
    /// score, the first of these actions is chosen. The index after the space's
    /// last action is the stop action.
    std::size_t Action = 0;
    /// The model's score of each action. The vector is empty if the model
    /// replied with the index of an action.
    std::vector<float> Values;
  };

  /// \p NumChoices is the number of actions, including the stop action if any.
  /// All arguments must outlive this object.
  PhaseOrderingPolicy(MLModelRunner &Runner, Observation &Features,
                      std::size_t NumChoices)
      : Runner(Runner), Features(Features), NumChoices(NumChoices) {}

  /// Requests the next action for \p Module, after the actions \p Taken. The
  /// model replies with the index of an action, or with one score per action,
  /// including the stop action. If the model has several outputs, the deciding
  /// output must be named `action`, `logits` or `values`. Returns
  /// SchemaMismatch for any other reply. Returns Deferred if the model defers.
  Expected<Reply> ask(const ModuleView &Module,
                      llvm::ArrayRef<std::uint16_t> Taken);
  /// Requests the model's score of the state after the actions \p Taken. The
  /// reply is one number. If the model has several outputs, the number must be
  /// the output `value`. The errors are the same as for ask().
  Expected<float> value(const ModuleView &Module,
                        llvm::ArrayRef<std::uint16_t> Taken);
  /// Informs the runner of the action that was taken. The runner may log it.
  Error tell(std::size_t Action);

  /// The number of requests so far.
  unsigned asked() const { return Asked; }

private:
  Error mismatch(const std::string &Why) const;
  /// Sends a request for a state. Returns the first output whose name is in \p
  /// Names, or the only output if no name matches. The output is valid until
  /// the next request.
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
