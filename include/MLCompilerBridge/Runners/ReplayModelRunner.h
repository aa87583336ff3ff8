//===- ReplayModelRunner.h - The decisions of a log -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines ReplayModelRunner, the runner for `replay:FILE`. It replies to the
/// requests of a compiler with the decisions in a log that RecordModelRunner or
/// LLVM has written. A replay therefore reproduces a compilation without the
/// model. `mlbridge log bisect` replays a part of a log to find the decision
/// that breaks a program.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_REPLAYMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_REPLAYMODELRUNNER_H

#include "MLCompilerBridge/MLModelRunner.h"

namespace MLBridge {

/// Replies to the n-th request with the n-th decision of a log. Each request
/// must have the features of the log: the same names, types, shapes and bytes,
/// in the same order. The contexts are not compared, because they often contain
/// the path of a file.
///
/// The first request that differs fails with an error that contains the number
/// of the request, the feature, the logged value and the actual value. The code
/// is SchemaMismatch if the names, types or shapes differ, and Model if a value
/// differs or the log has no more requests. After an error, all requests return
/// this error, because the compilation no longer follows the log.
class ReplayModelRunner final : public MLModelRunner {
public:
  /// The value of `Until` that stands for the number of requests in the log.
  static constexpr std::size_t EndOfLog = static_cast<std::size_t>(-1);

  /// Opens the log \p Path. If \p Until has a value, only the first \p Until
  /// requests receive a decision from the log. All later requests are deferred
  /// and not compared. Returns one of these errors:
  /// - System if the file cannot be read, or a RecordModelRunner, in any
  ///   process, is writing to it.
  /// - InvalidArgument if \p Path is not a regular file.
  /// - Malformed if the header is invalid. An empty file is a log without
  ///   requests.
  static Expected<std::unique_ptr<ReplayModelRunner>>
  create(std::string Path, std::optional<std::size_t> Until = std::nullopt);
  ~ReplayModelRunner() override;

  std::string describe() const override;
  /// Returns the metadata of the recorded model, if the compiler requested the
  /// same key when it recorded the log.
  Expected<std::optional<std::string>> metadata(std::string_view Key) override;

protected:
  Expected<Advice> evaluateUntyped(const FeatureSet &Features,
                                   const AdviceSpec &Wanted,
                                   Deadline Until) override;

private:
  class Log;
  explicit ReplayModelRunner(std::unique_ptr<Log> In);

  std::unique_ptr<Log> In;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_REPLAYMODELRUNNER_H
