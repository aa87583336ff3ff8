//===- RecordModelRunner.h - A log of requests and decisions ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RecordModelRunner: `record:FILE|SPEC` logs every request to SPEC, the
/// decision and, if logOutcome() passes one, the reward. The file has the
/// format of LLVM's training logs (llvm/Analysis/Utils/TrainingLogger.h), so
/// LLVM's readers accept it; `mlbridge log FILE` prints it.
///
/// The decision is the last tensor of an observation: the model's advice,
/// unless logOutcome() names another. A request that the model deferred is
/// logged only if logOutcome() passes a decision.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_RECORDMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_RECORDMODELRUNNER_H

#include "MLCompilerBridge/MLModelRunner.h"

namespace MLBridge {

/// All requests must have the same features, and all or none must have a
/// reward, because the format has one header. Otherwise the call that detects
/// the difference returns a SchemaMismatch. The first decision sets the name
/// and type; later ones are converted to that type, as advice is.
///
/// **fork().** The log belongs to the parent: in a child, evaluate() and
/// logOutcome() fail with Unsupported and write nothing. The child may create
/// its own runner with another log.
///
/// A failed write (a full disk) is a System error, and so is every later call;
/// the file then ends with the last complete observation.
class RecordModelRunner final : public MLModelRunner {
public:
  /// Creates or truncates \p Path. Errors: System if it cannot be written or
  /// another recorder, in any process, is writing to it; InvalidArgument if it
  /// is neither a regular file nor a character device.
  static Expected<std::unique_ptr<RecordModelRunner>>
  create(std::string Path, std::unique_ptr<MLModelRunner> Inner);
  /// Writes the last observation. Prints an error to stderr; call flush() first
  /// to receive it.
  ~RecordModelRunner() override;

  /// Writes all observations, including the last one if it is decided.
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
  /// Whether the log's failure has not been returned to a caller yet.
  bool HasUnreportedFailure = false;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_RECORDMODELRUNNER_H
