//===- Decision.h - Turns a model's outputs into advice ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Decision: computes the advice from the model's outputs. It applies
/// DecisionOptions and the model's metadata.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_INPROCESS_DECISION_H
#define MLBRIDGE_LIB_INPROCESS_DECISION_H

#include "MLCompilerBridge/Runners/InProcessModelRunner.h"

#include <random>

namespace MLBridge::inprocess {

class Decision {
public:
  /// Checks \p Options against the outputs of \p M. Therefore, wrong names and
  /// unsuitable rules are reported here rather than at each request.
  static Expected<Decision> create(const Model &M,
                                   const DecisionOptions &Options);

  /// Returns the advice for the model's \p Outputs. \p Features are the
  /// features of the request. They must include the mask if the options name a
  /// mask. The advice's views are valid until the next call, and only while
  /// \p Outputs are valid.
  Expected<Advice> decide(Span<const TensorView> Outputs,
                          Span<const TensorView> Features);

  /// Returns the index of the only output on which the advice depends. Returns
  /// nullopt if all outputs are returned.
  std::optional<std::size_t> output() const { return Output; }
  /// Returns true if the advice is an index into output(). Returns false if the
  /// advice is the output itself.
  bool chooses() const { return Decide != Rule::Outputs; }

private:
  using Rule = DecisionOptions::Rule;

  explicit Decision(const Model &M, const DecisionOptions &Options)
      : ModelName(M.name()), Mask(Options.Mask), Random(Options.Seed) {}

  Error readMask(const TensorView &Scores, Span<const TensorView> Features);
  template <typename T> Error choose(const TensorView &Scores);
  template <typename T>
  Expected<std::int64_t> argMax(Span<const T> Row,
                                const std::uint8_t *Legal) const;
  template <typename T>
  Expected<std::int64_t> sample(Span<const T> Row, const std::uint8_t *Legal);

  std::string ModelName;
  std::optional<std::size_t> Output;
  Rule Decide = Rule::Outputs;
  std::string Mask;
  std::size_t MaskSlot = 0;
  /// The random number generator. The same seed gives the same choices on every
  /// machine.
  std::mt19937_64 Random;
  /// One byte for each score. The byte is 0 if the action is illegal. Empty if
  /// there is no mask.
  std::vector<std::uint8_t> Legal;
  std::vector<std::int64_t> Choices;
  TensorView Choice;
};

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_DECISION_H
