//===- Watchdog.h - Ends evaluations that are late --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Watch: interrupts an evaluation that is not done by its deadline, for
/// runtimes that can be interrupted by another thread only.
///
/// That thread is one for all Watches of a process. It starts with the first
/// evaluation that has a deadline, and ends with the last Watch. Between it
/// sleeps until the earliest deadline, so an evaluation costs two atomic
/// exchanges and no system call: it says when it is due and when it is done.
/// The thread is woken where an evaluation is due before it would look by
/// itself; that is seldom, since deadlines that are equally far away come in
/// order.
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

/// What can be interrupted.
class Interruptible {
public:
  /// Has the evaluation return soon. Called by another thread, while the
  /// evaluation runs or just after; it must not wait.
  virtual void interrupt() = 0;
  /// Forgets the interruption, so that the next evaluation runs. Called by the
  /// evaluation's own thread.
  virtual void resume() = 0;

protected:
  ~Interruptible() = default;
};

/// The evaluations of one thread, one after another.
class Watch {
public:
  /// \p Target outlives it.
  explicit Watch(Interruptible &Target) : Target(Target) {}
  ~Watch();
  Watch(const Watch &) = delete;
  Watch &operator=(const Watch &) = delete;

  /// An evaluation is about to begin: it is interrupted at \p Until. System,
  /// and nothing is watched, where there is no thread to be had.
  Error begin(Deadline Until) {
    const Ticks When = Until.time().time_since_epoch().count();
    // Before the look at when the thread looks: it has stored that before its
    // last look at this. So one of both sees the other's.
    Due.store(When);
    if (When >= NextLook->load()) [[likely]]
      return Error::success();
    return alert(When);
  }

  /// It has returned. Whether it was interrupted.
  bool end() { return Due.exchange(Idle) == Interrupted && acknowledge(); }

private:
  friend class Watchdog;
  using Ticks = Deadline::Clock::rep;

  /// Not between begin() and end().
  static constexpr Ticks Idle = std::numeric_limits<Ticks>::max();
  static constexpr Ticks Interrupted = std::numeric_limits<Ticks>::min();
  /// Where there is no thread.
  static constexpr std::atomic<Ticks> NoLook{Idle};

  Error alert(Ticks When);
  bool acknowledge();

  Interruptible &Target;
  /// When the evaluation is due, Idle, or Interrupted.
  std::atomic<Ticks> Due = Idle;
  const std::atomic<Ticks> *NextLook = &NoLook;
  std::shared_ptr<Watchdog> Dog;
};

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_WATCHDOG_H
