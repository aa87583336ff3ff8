//===- Deadline.h - A limit on waiting --------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Every wait in this library takes a Deadline. A point in time, unlike a
/// duration, also limits a call that waits several times.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_DEADLINE_H
#define MLCOMPILERBRIDGE_DEADLINE_H

#include <algorithm>
#include <chrono>

namespace MLBridge {

using Duration = std::chrono::nanoseconds;

/// A reason to end a wait early, such as Ctrl-C in an interactive host. The
/// host derives from this class and attaches an object to a Deadline.
class Interrupt {
public:
  /// The longest sleep between two calls of isRequested().
  static constexpr std::chrono::milliseconds Interval{50};

  virtual ~Interrupt() = default;

  /// Whether the wait should end. Called by the waiting thread between two
  /// sleeps. Must stay true once it is true, so that later waits under the same
  /// Deadline end too.
  virtual bool isRequested() = 0;
};

/// A point on the monotonic clock. Spec options spell "never" as `inf`.
///
/// A Deadline may carry an Interrupt. Code that waits under a Deadline honours
/// it by sleeping for pollTimeout() or until nextLook(), then checking
/// expired().
class Deadline {
public:
  using Clock = std::chrono::steady_clock;

  /// \p Wait from now. Saturates: Duration::max() means never.
  static Deadline in(Duration Wait) {
    if (Wait == Duration::max()) // Avoids reading the clock.
      return never();
    Clock::time_point Now = Clock::now();
    return Wait >= Clock::time_point::max() - Now ? never()
                                                  : Deadline(Now + Wait);
  }
  static Deadline never() { return Deadline(Clock::time_point::max()); }

  /// The same point in time, with \p Reason to end waits earlier. \p Reason
  /// must outlive all waits under the result.
  Deadline unless(Interrupt &Reason) const { return Deadline(When, &Reason); }
  /// \p Wait from now, with this Deadline's Interrupt.
  Deadline restartedFor(Duration Wait) const {
    return Deadline(in(Wait).When, Stop);
  }

  /// The point in time; time_point::max() for never.
  Clock::time_point time() const { return When; }
  bool isNever() const { return When == Clock::time_point::max(); }
  /// Whether the deadline has passed or the wait was interrupted.
  bool expired() const {
    return (!isNever() && Clock::now() >= When) || isInterrupted();
  }
  /// Whether the Interrupt requests the end of the wait.
  bool isInterrupted() const { return Stop && Stop->isRequested(); }
  /// The time left, at least zero.
  Duration remaining() const {
    if (isNever())
      return Duration::max();
    return std::max(Duration::zero(), Duration(When - Clock::now()));
  }
  /// The next sleep as poll(2)'s timeout: milliseconds, rounded up; -1 for
  /// unlimited.
  int pollTimeout() const {
    using Millis = std::chrono::milliseconds;
    const Millis Most = Stop ? Interrupt::Interval : Millis(1 << 30);
    if (isNever())
      return Stop ? static_cast<int>(Most.count()) : -1;
    auto Left = std::chrono::ceil<Millis>(remaining());
    return static_cast<int>(std::min(Left, Most).count());
  }
  /// The end of the next sleep.
  Deadline nextLook() const {
    return Stop ? orEarlier(in(Interrupt::Interval)) : *this;
  }
  /// The earlier of the two, with this Deadline's Interrupt.
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
