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
/// always defers. A compilation whose model has died then continues with the
/// compiler's heuristic instead of waiting for a timeout at every decision.
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
  /// Flushes SPEC even after a failure, and returns its error: unwritten
  /// observations are lost in any case.
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
