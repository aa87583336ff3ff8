//===- FallbackModelRunner.h - Defers after a failure -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines FallbackModelRunner, the runner for `fallback|SPEC`. It passes
/// requests to the runner for SPEC. After the first failure, it defers all
/// requests. If a model dies, the compilation therefore continues with the
/// compiler's heuristic and does not wait for a timeout at every decision.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_FALLBACKMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_FALLBACKMODELRUNNER_H

#include "MLCompilerBridge/MLModelRunner.h"

namespace MLBridge {

class FallbackModelRunner final : public MLModelRunner {
public:
  explicit FallbackModelRunner(std::unique_ptr<MLModelRunner> Inner);

  /// Returns the failure that made this runner defer, or success if no request
  /// has failed.
  const Error &cause() const { return Cause; }

  void switchContext(std::string_view Name) override;
  Error logOutcomeUntyped(const TensorView *Decision,
                          std::optional<double> Reward) override;
  /// Flushes the runner for SPEC and returns its error, even after a failed
  /// request. The caller needs the error because unwritten observations are
  /// lost.
  Error flush() override;
  std::string describe() const override;
  Expected<std::optional<std::string>> metadata(std::string_view Key) override;
  Error loadBeforeFork() override;

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
