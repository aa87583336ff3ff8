//===- FunctionRunner.h - A runner that calls a function --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FunctionRunner: an in-process runner that calls a function from features to
/// advice.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_UNIT_FUNCTIONRUNNER_H
#define MLBRIDGE_TESTS_UNIT_FUNCTIONRUNNER_H

#include "MLCompilerBridge/MLModelRunner.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace MLBridge::test {

class FunctionRunner final : public MLModelRunner {
public:
  /// Writes the advice to the last argument, or fails.
  using Function =
      std::function<Error(const FeatureSet &, Deadline, FeatureSet &)>;

  explicit FunctionRunner(Function Reply) : Reply(std::move(Reply)) {}
  std::string describe() const override { return "function"; }
  void switchContext(std::string_view Name) override {
    Contexts.emplace_back(Name);
  }
  Error logOutcomeUntyped(const TensorView *Decision,
                          std::optional<double> Reward) override {
    Outcomes.emplace_back(Decision ? std::string(Decision->Name) : "", Reward);
    return OutcomeError;
  }

  /// The contexts and outcomes that this runner got, for tests of decorators.
  std::vector<std::string> Contexts;
  std::vector<std::pair<std::string, std::optional<double>>> Outcomes;
  /// The result of logOutcome().
  Error OutcomeError;

protected:
  Expected<Advice> evaluateUntyped(const FeatureSet &Features,
                                   const AdviceSpec &,
                                   Deadline Until) override {
    Out.clear();
    if (Error E = Reply(Features, Until, Out))
      return E;
    return Advice(Out.tensors());
  }

private:
  Function Reply;
  FeatureSet Out;
};

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_UNIT_FUNCTIONRUNNER_H
