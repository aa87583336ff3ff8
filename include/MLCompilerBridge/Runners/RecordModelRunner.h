//===- RecordModelRunner.h - A log of requests and decisions ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines RecordModelRunner, the runner for `record:FILE|SPEC`. It passes
/// requests to the runner for SPEC, and logs each request with its decision. It
/// also logs the reward if logOutcome() passes a reward. The file has the
/// format of LLVM's training logs (llvm/Analysis/Utils/TrainingLogger.h), so
/// LLVM's tools can read it. `mlbridge log FILE` prints the log.
///
/// In the file, the decision is the last tensor of an observation. If
/// logOutcome() passes a decision, this decision is logged. Otherwise, the
/// model's advice is logged. If the model deferred a request, the request is
/// logged only if logOutcome() passes a decision.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_RECORDMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_RECORDMODELRUNNER_H

#include "MLCompilerBridge/MLModelRunner.h"

namespace MLBridge {

/// Logs requests to a file. All requests must have the same features, and
/// either all or none of them must have a reward, because the file has one
/// header for all requests. The call that detects a difference returns a
/// SchemaMismatch. The first decision sets the decision's name and type. Later
/// decisions are converted to this type with the rules of Advice::get().
///
/// **fork().** The log belongs to the parent process. In a child process,
/// evaluate() and logOutcome() return Unsupported and write nothing. The child
/// can create a new runner with another log.
///
/// If a write fails, for example because the disk is full, the call and all
/// later calls return System. The file then ends with the last complete
/// observation.
class RecordModelRunner final : public MLModelRunner {
public:
  /// Opens or creates the file \p Path. An old log in the file is removed when
  /// the model first replies or defers. Therefore, the old log is kept if the
  /// model cannot be reached. If there is no request, flush() and the
  /// destructor remove the old log. Returns one of these errors:
  /// - System if the file cannot be written, or another RecordModelRunner, in
  ///   any process, is writing to it.
  /// - InvalidArgument if \p Path is neither a regular file nor a character
  ///   device.
  static Expected<std::unique_ptr<RecordModelRunner>>
  create(std::string Path, std::unique_ptr<MLModelRunner> Inner);
  /// Writes the last observation. If this fails, prints the error to stderr. To
  /// receive the error, call flush() first.
  ~RecordModelRunner() override;

  /// Writes all observations. Includes the last observation if its decision is
  /// known.
  Error flush() override;

  void switchContext(std::string_view Name) override;
  Error logOutcomeUntyped(const TensorView *Decision,
                          std::optional<double> Reward) override;
  std::string describe() const override;
  Expected<std::optional<std::string>> metadata(std::string_view Key) override;
  Error loadBeforeFork() override;

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
  /// True if writing the log has failed and no caller has received the error
  /// yet.
  bool HasUnreportedFailure = false;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_RECORDMODELRUNNER_H
