//===- Watchdog.h - Interrupts late evaluations -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Watch: interrupts an evaluation at its deadline. Use it for runtimes that
/// only another thread can interrupt.
///
/// All Watches of a process share one thread. The thread starts with the first
/// evaluation that has a deadline, and it ends with the last Watch. It sleeps
/// until the earliest deadline.
///
/// An evaluation usually costs two atomic exchanges and no system call. The
/// first exchange stores the evaluation's deadline. The second exchange marks
/// the evaluation's end. An evaluation wakes the thread only if its deadline is
/// before the time at which the thread wakes anyway. This is rare, because
/// evaluations with equal timeouts are due in the order in which they begin.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_INPROCESS_WATCHDOG_H
#define MLBRIDGE_LIB_INPROCESS_WATCHDOG_H

#include "MLCompilerBridge/Deadline.h"
#include "MLCompilerBridge/Error.h"

#include <atomic>
#include <limits>
#include <memory>

namespace MLBridge::inprocess {

class Watchdog;

/// An evaluation that can be interrupted.
class Interruptible {
public:
  /// Makes the evaluation return soon. Another thread calls this function
  /// during the evaluation or just after it. The function must not block.
  virtual void interrupt() = 0;
  /// Clears the interruption, so that the next evaluation runs. The
  /// evaluation's own thread calls this function.
  virtual void resume() = 0;

protected:
  ~Interruptible() = default;
};

/// Watches the evaluations of one thread, one after another.
class Watch {
public:
  /// Creates a Watch for \p Target, which must outlive the Watch.
  explicit Watch(Interruptible &Target) : Target(Target) {}
  ~Watch();
  Watch(const Watch &) = delete;
  Watch &operator=(const Watch &) = delete;

  /// Starts watching. Call this before an evaluation. The evaluation will be
  /// interrupted at \p Until. Returns a System error if no thread can be
  /// started. In this case, the evaluation is not watched.
  Error begin(Deadline Until) {
    const Ticks When = Until.time().time_since_epoch().count();
    // Store Due before loading NextCheck. The thread stores NextCheck before it
    // loads Due for the last time. Therefore, at least one side sees the other
    // side's value.
    Due.store(When);
    if (When >= NextCheck->load()) [[likely]]
      return Error::success();
    return alert(When);
  }

  /// Stops watching. Call this after an evaluation. Returns true if the
  /// evaluation was interrupted.
  bool end() { return Due.exchange(Idle) == Interrupted && acknowledge(); }

private:
  friend class Watchdog;
  using Ticks = Deadline::Clock::rep;

  /// The value of Due while no evaluation runs.
  static constexpr Ticks Idle = std::numeric_limits<Ticks>::max();
  static constexpr Ticks Interrupted = std::numeric_limits<Ticks>::min();
  /// NextCheck points to this value while there is no thread. Every deadline is
  /// earlier, so begin() then starts the thread.
  static constexpr std::atomic<Ticks> NoCheck{Idle};

  Error alert(Ticks When);
  bool acknowledge();

  Interruptible &Target;
  /// The time at which the evaluation is due, or Idle, or Interrupted.
  std::atomic<Ticks> Due = Idle;
  const std::atomic<Ticks> *NextCheck = &NoCheck;
  std::shared_ptr<Watchdog> Dog;
};

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_WATCHDOG_H
