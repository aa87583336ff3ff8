//===- FallbackModelRunner.h - Failure as deferral --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FallbackModelRunner: `fallback|SPEC` asks SPEC until it fails once, then
/// defers for good, so that a compile whose model died goes on with the
/// compiler's heuristic at full speed instead of waiting for a time-out at
/// every decision.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_FALLBACKMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_FALLBACKMODELRUNNER_H

#include "MLCompilerBridge/MLModelRunner.h"

namespace MLBridge {

class FallbackModelRunner final : public MLModelRunner {
public:
  explicit FallbackModelRunner(std::unique_ptr<MLModelRunner> Inner);

  /// Why this runner defers; success while the model answers.
  const Error &cause() const { return Cause; }

  void switchContext(std::string_view Name) override;
  Error logOutcomeUntyped(const TensorView *Decision,
                          std::optional<double> Reward) override;
  /// The runner's own: what it could not write is lost, whoever decided.
  Error flush() override;
  std::string describe() const override;
  Expected<std::optional<std::string>> metadata(std::string_view Key) override;

protected:
  Expected<Advice> evaluateUntyped(const FeatureSet &Features,
                                   const AdviceSpec &Wanted,
                                   Deadline Until) override;

private:
  std::unique_ptr<MLModelRunner> Inner;
  Error Cause;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_FALLBACKMODELRUNNER_H
