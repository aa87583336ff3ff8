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

/// A reason to end a wait early: Ctrl-C in an interactive host, for one. The
/// host derives from this and gives it to a Deadline.
class Interrupt {
public:
  /// The longest that a wait sleeps between two requests.
  static constexpr std::chrono::milliseconds Interval{50};

  virtual ~Interrupt() = default;

  /// Whether the wait is to end. The thread that waits asks before it goes on
  /// sleeping. Once true, this stays true: the waits that follow under the same
  /// Deadline end too.
  virtual bool isRequested() = 0;
};

/// A point on the monotonic clock. Spec options write "never" as `inf`.
///
/// A Deadline may carry an Interrupt. Whoever waits under it need not know: it
/// sleeps for pollTimeout() or until nextLook(), and then looks at expired().
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

  /// The same point; \p Reason, which outlives all waits under it, may end them
  /// earlier.
  Deadline unless(Interrupt &Reason) const { return Deadline(When, &Reason); }
  /// \p Wait from now, with the Interrupt of this one.
  Deadline restartedFor(Duration Wait) const {
    return Deadline(in(Wait).When, Stop);
  }

  /// For what waits by the clock itself; time_point::max() for never.
  Clock::time_point time() const { return When; }
  bool isNever() const { return When == Clock::time_point::max(); }
  /// Whether to wait no longer.
  bool expired() const {
    return (!isNever() && Clock::now() >= When) || isInterrupted();
  }
  /// Whether that is by request and not by the clock.
  bool isInterrupted() const { return Stop && Stop->isRequested(); }
  /// What is left, at least zero.
  Duration remaining() const {
    if (isNever())
      return Duration::max();
    return std::max(Duration::zero(), Duration(When - Clock::now()));
  }
  /// How long to sleep at once, as poll(2) wants it: rounded up, -1 for ever.
  int pollTimeout() const {
    using Millis = std::chrono::milliseconds;
    const Millis Most = Stop ? Interrupt::Interval : Millis(1 << 30);
    if (isNever())
      return Stop ? static_cast<int>(Most.count()) : -1;
    auto Left = std::chrono::ceil<Millis>(remaining());
    return static_cast<int>(std::min(Left, Most).count());
  }
  /// Until when to sleep at once.
  Deadline nextLook() const {
    return Stop ? orEarlier(in(Interrupt::Interval)) : *this;
  }
  /// The earlier of the two, with the Interrupt of this one.
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
