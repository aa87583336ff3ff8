//===- Decision.h - From a model's outputs to an advice ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Decision: what DecisionOptions and the model's metadata ask for, done to the
/// outputs of one evaluation after another.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_INPROCESS_DECISION_H
#define MLBRIDGE_LIB_INPROCESS_DECISION_H

#include "MLCompilerBridge/Runners/InProcessModelRunner.h"

#include <random>

namespace MLBridge::inprocess {

class Decision {
public:
  /// What \p Options make of the outputs of \p M. Wrong names and rules that
  /// do not fit the outputs are errors here, not at each request.
  static Expected<Decision> create(const Model &M,
                                   const DecisionOptions &Options);

  /// The advice for \p Outputs, which are the model's; \p Features are those
  /// of the request, with the mask if there is one. The views are valid until
  /// the next call, or as long as \p Outputs are.
  Expected<Advice> decide(Span<const TensorView> Outputs,
                          Span<const TensorView> Features);

  /// The output that is decided on, or shown; all of them where there is none.
  std::optional<std::size_t> output() const { return Output; }
  /// Whether the advice is an index in that output, and not the output itself.
  bool chooses() const { return Decide != Rule::Outputs; }

private:
  using Rule = DecisionOptions::Rule;

  explicit Decision(const Model &M, const DecisionOptions &Options)
      : ModelName(M.name()), Mask(Options.Mask), Random(Options.Seed) {}

  /// Reads the mask into Legal.
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
  /// mt19937_64 and what is made of it are the same on every machine.
  std::mt19937_64 Random;
  /// A byte for each score, 0 where the action is illegal; empty where there
  /// is no mask.
  std::vector<std::uint8_t> Legal;
  std::vector<std::int64_t> Choices;
  TensorView Choice;
};

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_DECISION_H
