//===- Deadline.h - The time at which a wait ends ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines Deadline, the point in time at which a wait ends. Functions that
/// wait have a Deadline parameter. A function that waits several times passes
/// the same Deadline to each wait, so the whole call ends on time.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_DEADLINE_H
#define MLCOMPILERBRIDGE_DEADLINE_H

#include <algorithm>
#include <chrono>

namespace MLBridge {

using Duration = std::chrono::nanoseconds;

/// A reason to end a wait early, such as Ctrl-C in an interactive program. The
/// program derives a class from Interrupt and attaches an object to a Deadline.
class Interrupt {
public:
  /// The longest sleep between two calls of isRequested().
  static constexpr std::chrono::milliseconds Interval{50};

  virtual ~Interrupt() = default;

  /// Returns whether the wait should end. The waiting thread calls this
  /// function between two sleeps. Once the function has returned true, it must
  /// keep returning true, so that later waits with the same Deadline end too.
  virtual bool isRequested() = 0;
};

/// A point in time on the monotonic clock, or never. Options in model specs
/// spell "never" as `inf`.
///
/// A Deadline may carry an Interrupt. To support interrupts, waiting code
/// sleeps for pollTimeout() or until nextLook(), then checks expired(), and
/// repeats both steps.
class Deadline {
public:
  using Clock = std::chrono::steady_clock;

  /// Returns the point in time \p Wait from now. Returns never() if \p Wait is
  /// Duration::max() or the sum would overflow.
  static Deadline in(Duration Wait) {
    if (Wait == Duration::max()) // Skip reading the clock.
      return never();
    Clock::time_point Now = Clock::now();
    return Wait >= Clock::time_point::max() - Now ? never()
                                                  : Deadline(Now + Wait);
  }
  static Deadline never() { return Deadline(Clock::time_point::max()); }

  /// Returns the same point in time with the Interrupt \p Reason, which can end
  /// waits earlier. \p Reason must outlive all waits that use the result.
  Deadline unless(Interrupt &Reason) const { return Deadline(When, &Reason); }
  /// Returns the point in time \p Wait from now, with this Deadline's
  /// Interrupt.
  Deadline restartedFor(Duration Wait) const {
    return Deadline(in(Wait).When, Stop);
  }

  /// Returns the point in time, or time_point::max() for never.
  Clock::time_point time() const { return When; }
  bool isNever() const { return When == Clock::time_point::max(); }
  /// Returns whether the deadline has passed or the Interrupt requests the end
  /// of the wait.
  bool expired() const {
    return (!isNever() && Clock::now() >= When) || isInterrupted();
  }
  /// Returns whether the Interrupt requests the end of the wait.
  bool isInterrupted() const { return Stop && Stop->isRequested(); }
  /// Returns the time until the deadline, or zero if the deadline has passed.
  Duration remaining() const {
    if (isNever())
      return Duration::max();
    return std::max(Duration::zero(), Duration(When - Clock::now()));
  }
  /// Returns the length of the next sleep as a timeout for poll(2). The unit is
  /// milliseconds, rounded up, and -1 means no limit.
  int pollTimeout() const {
    using Millis = std::chrono::milliseconds;
    const Millis Most = Stop ? Interrupt::Interval : Millis(1 << 30);
    if (isNever())
      return Stop ? static_cast<int>(Most.count()) : -1;
    auto Left = std::chrono::ceil<Millis>(remaining());
    return static_cast<int>(std::min(Left, Most).count());
  }
  /// Returns the end of the next sleep.
  Deadline nextLook() const {
    return Stop ? orEarlier(in(Interrupt::Interval)) : *this;
  }
  /// Returns the earlier of the two points in time, with this Deadline's
  /// Interrupt.
  Deadline orEarlier(Deadline Other) const {
    return Deadline(std::min(When, Other.When), Stop);
  }

private:
  explicit Deadline(Clock::time_point When, Interrupt *Stop = nullptr)
      : When(When), Stop(Stop) {}

  Clock::time_point When;
  Interrupt *Stop;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_DEADLINE_H
