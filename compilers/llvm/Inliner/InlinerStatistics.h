//===- InlinerStatistics.h - Statistics of a model in a module --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// InlinerStatistics counts the decisions for -mlbridge-print-statistics. The
/// plug-in prints one line for each module, which is wrapped here:
/// \code
///   mlbridge-inliner: a.c: asked=204 inlined=62 deferred=0 failed=0
///     compared=204 default_inlined=60 both_inlined=58 agreement=97.06%
///     first_us=412.0 mean_us=8.3 total_us=2096.9
/// \endcode
/// The counts from `compared=` to `agreement=` are printed only if the model
/// has received LLVM's decision. The confusion matrix can be computed from
/// them. The times are durations of requests to the model:
///
/// - `first_us` is the duration of the first request, which includes
///   connecting.
/// - `mean_us` is the mean duration of the other requests.
/// - `total_us` is the sum over all requests.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_INLINER_INLINERSTATISTICS_H
#define MLBRIDGE_LLVM_INLINER_INLINERSTATISTICS_H

#include "MLCompilerBridge/Error.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace MLBridge {

class InlinerStatistics {
public:
  using Clock = std::chrono::steady_clock;

  class Stopwatch {
  public:
    Clock::duration elapsed() const { return Clock::now() - Start; }

  private:
    Clock::time_point Start = Clock::now();
  };

  /// The decision about one call site.
  struct Decision {
    bool Inline = false;
    /// Success if the model decided. Otherwise, the reason why a decision file
    /// or LLVM's heuristic decided.
    ErrorCode By = ErrorCode::Success;
    /// LLVM's own decision, if the model has received it.
    std::optional<bool> Default;
    Clock::duration Time{};
  };

  explicit InlinerStatistics(std::string ModuleName)
      : ModuleName(std::move(ModuleName)) {}

  void add(const Decision &Made);
  /// Returns the line, without a newline.
  std::string str() const;

private:
  std::string ModuleName;
  std::uint64_t Asked = 0, Inlined = 0, Deferred = 0, Failed = 0;
  std::uint64_t Compared = 0, DefaultInlined = 0, BothInlined = 0, Agreed = 0;
  Clock::duration First{}, Total{};
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_INLINER_INLINERSTATISTICS_H
