//===- InlinerStatistics.h - What the model did in a module -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The counts behind -mlbridge-print-statistics, one line a module:
/// \code
///   mlbridge-inliner: a.c: asked=204 inlined=62 deferred=0 failed=0
///     compared=204 default_inlined=60 both_inlined=58 agreement=97.06%
///     first_us=412.0 mean_us=8.3 total_us=2096.9
/// \endcode
/// The second line's (it is one line) are there when the model was told LLVM's
/// decision; with them one has the whole confusion matrix. The times are those
/// of asking the model: the first request, which also meets it; the mean of
/// the others; all.
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

  /// One call site.
  struct Decision {
    bool Inline = false;
    /// Success: the model's decision. Else the heuristic's, and why.
    ErrorCode By = ErrorCode::Success;
    /// LLVM's own decision, where the model was told it.
    std::optional<bool> Default;
    Clock::duration Time{};
  };

  explicit InlinerStatistics(std::string ModuleName)
      : ModuleName(std::move(ModuleName)) {}

  void add(const Decision &Made);
  /// The line, without its end.
  std::string str() const;

private:
  std::string ModuleName;
  std::uint64_t Asked = 0, Inlined = 0, Deferred = 0, Failed = 0;
  std::uint64_t Compared = 0, DefaultInlined = 0, BothInlined = 0, Agreed = 0;
  Clock::duration First{}, Total{};
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_INLINER_INLINERSTATISTICS_H
