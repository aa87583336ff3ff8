//===- RecordModelRunner.h - A log of requests and decisions ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RecordModelRunner: `record:FILE|SPEC` writes every request that SPEC is
/// asked, what was decided and, where logOutcome() is told, how good it was.
/// The file is LLVM's training log (llvm/Analysis/Utils/TrainingLogger.h), so
/// LLVM's own readers take it; `mlbridge log FILE` prints it.
///
/// The decision is the last tensor of an observation. It is the model's
/// answer, unless logOutcome() names another; a request that the model
/// deferred and nobody decided is not written.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_RECORDMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_RECORDMODELRUNNER_H

#include "MLCompilerBridge/MLModelRunner.h"

namespace MLBridge {

/// All requests must have the same features, and either all or none a reward:
/// the format has one header. Anything else is a SchemaMismatch, returned by
/// the call that finds it. The first decision gives the decision its name and
/// type; later ones are converted to it, as advice is.
///
/// **fork().** The log stays the parent's: a child that asks, or logs an
/// outcome, gets an Unsupported that says so, and writes nothing. It may make a
/// runner of its own, with another log.
///
/// A write that fails (a full disk) is a System error, and so is every call
/// after it; the file then ends with the last observation that it holds whole.
class RecordModelRunner final : public MLModelRunner {
public:
  /// Creates \p Path (truncates it when it is there). An error when another
  /// recorder, of this process or another, is writing the same file.
  static Expected<std::unique_ptr<RecordModelRunner>>
  create(std::string Path, std::unique_ptr<MLModelRunner> Inner);
  /// Writes the last observation; an error can only be printed here, so call
  /// flush() first where it matters.
  ~RecordModelRunner() override;

  /// Writes what is complete, the last observation included.
  Error flush() override;

  void switchContext(std::string_view Name) override;
  Error logOutcomeUntyped(const TensorView *Decision,
                          std::optional<double> Reward) override;
  std::string describe() const override;
  Expected<std::optional<std::string>> metadata(std::string_view Key) override;

protected:
  Expected<Advice> evaluateUntyped(const FeatureSet &Features,
                                   const AdviceSpec &Wanted,
                                   Deadline Until) override;

private:
  class Log;
  RecordModelRunner(std::unique_ptr<Log> Out,
                    std::unique_ptr<MLModelRunner> Inner);

  std::unique_ptr<Log> Out;
  std::unique_ptr<MLModelRunner> Inner;
  /// Whether no caller has been told why the log cannot be written.
  bool HasUntoldFailure = false;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_RECORDMODELRUNNER_H
