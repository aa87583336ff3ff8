//===- TrialProcess.h - Tries an allocation in a fork -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// forkTrial() copies the process, so that the copy can allocate a function
/// while the compiler's own state stays unchanged. The copy makes exactly the
/// same allocation as the compiler would make, because it has the same memory.
/// A trial that crashes or hangs does no harm.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_TRIALPROCESS_H
#define MLBRIDGE_LLVM_REGALLOC_TRIALPROCESS_H

#include "RegAlloc/AllocationCost.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <system_error>

namespace MLBridge {

/// Returns the number of this process's threads, or 0 if it is unknown. A
/// process with several threads must not fork a trial, because the copy has
/// only one thread, and the missing threads may have held locks.
unsigned countThreads();

/// The usual time limit of a trial.
inline constexpr std::chrono::seconds MaxTrialTime(20);

/// The result that a trial sends. All members are plain, so that one write
/// sends the object.
struct TrialOutcome {
  AllocationCost Cost;
  /// The cycles of a run of the function, or 0 if they were not measured.
  double Cycles = 0;
  /// True if a model that was only compared has agreed with all decisions.
  bool ModelAgrees = false;
  /// The index of the failed model's session, or -1, and the model's error.
  int FailedModel = -1;
  std::array<char, 1024> Failure{};
  /// For each session of the tried policy, the number of requests that the
  /// session has sent, before the fork and in the trial.
  std::array<std::uint64_t, 3> Requests{};
};

struct Trial {
  /// True in the copy. The copy then continues as the compiler would, and
  /// finally calls endTrial().
  bool IsCopy = false;
  /// In the copy, the pipe to the compiler.
  int Pipe = -1;
  /// In the compiler, the outcome. Empty if the trial failed.
  std::optional<TrialOutcome> Outcome;
  /// In the compiler, the reason why no process could be started.
  std::error_code NotStarted;
  /// In the compiler, true if the trial was ended because of its limit.
  bool IsLate = false;
};

/// Copies the process. In the compiler, waits until the copy has called
/// endTrial(), has ended in another way, or \p Limit has passed. Then ends the
/// copy and returns. The copy prints nothing, removes no files, and ends if the
/// compiler ends.
Trial forkTrial(std::chrono::milliseconds Limit);

/// Sends \p Outcome from the copy to the compiler, and ends the copy.
[[noreturn]] void endTrial(int Pipe, const TrialOutcome &Outcome);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_TRIALPROCESS_H
