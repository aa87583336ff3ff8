//===- Deadline.h - When waiting ends ---------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Every wait in this library takes a Deadline: a point in time, so that a
/// call made of several waits ends when the caller said, not later by a
/// time-out for each of them.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_DEADLINE_H
#define MLCOMPILERBRIDGE_DEADLINE_H

#include <algorithm>
#include <chrono>

namespace MLBridge {

using Duration = std::chrono::nanoseconds;

/// A point on the monotonic clock. Spec options write "never" as `inf`.
class Deadline {
public:
  using Clock = std::chrono::steady_clock;

  /// \p Wait from now; saturates, so that Duration::max() is never.
  static Deadline in(Duration Wait) {
    if (Wait == Duration::max()) // Spares a look at the clock.
      return never();
    Clock::time_point Now = Clock::now();
    return Wait >= Clock::time_point::max() - Now ? never()
                                                  : Deadline(Now + Wait);
  }
  static Deadline never() { return Deadline(Clock::time_point::max()); }

  /// For what waits by the clock itself; time_point::max() for never.
  Clock::time_point time() const { return When; }
  bool isNever() const { return When == Clock::time_point::max(); }
  bool expired() const { return !isNever() && Clock::now() >= When; }
  /// What is left, at least zero.
  Duration remaining() const {
    if (isNever())
      return Duration::max();
    return std::max(Duration::zero(), Duration(When - Clock::now()));
  }
  /// The remaining time as poll(2) wants it: rounded up, -1 for never.
  int pollTimeout() const {
    if (isNever())
      return -1;
    using Millis = std::chrono::milliseconds;
    auto Left = std::chrono::ceil<Millis>(remaining());
    return static_cast<int>(std::min(Left, Millis(1 << 30)).count());
  }
  /// The earlier of the two.
  Deadline orEarlier(Deadline Other) const {
    return Deadline(std::min(When, Other.When));
  }

private:
  explicit Deadline(Clock::time_point When) : When(When) {}
  Clock::time_point When;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_DEADLINE_H
