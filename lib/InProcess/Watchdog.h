//===- Watchdog.h - Interrupts late evaluations -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Watch: interrupts an evaluation at its deadline, for runtimes that only
/// another thread can interrupt.
///
/// All Watches of a process share that thread. It starts with the first
/// evaluation that has a deadline and ends with the last Watch. It sleeps until
/// the earliest deadline, so an evaluation costs two atomic exchanges and no
/// system call: one exchange stores its deadline, the other marks its end. An
/// evaluation wakes the thread only if it is due before the thread's next look.
/// That is rare, since equal timeouts expire in order.
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
  /// Makes the evaluation return soon. Called by another thread during the
  /// evaluation or just after it; must not block.
  virtual void interrupt() = 0;
  /// Clears the interruption, so that the next evaluation runs. Called by the
  /// evaluation's own thread.
  virtual void resume() = 0;

protected:
  ~Interruptible() = default;
};

/// Watches the evaluations of one thread, one after another.
class Watch {
public:
  /// \p Target must outlive this.
  explicit Watch(Interruptible &Target) : Target(Target) {}
  ~Watch();
  Watch(const Watch &) = delete;
  Watch &operator=(const Watch &) = delete;

  /// Call before an evaluation, which is interrupted at \p Until. System if no
  /// thread can be started; nothing is watched then.
  Error begin(Deadline Until) {
    const Ticks When = Until.time().time_since_epoch().count();
    // Store Due before loading NextLook: the thread stores NextLook before its
    // last look at Due. So at least one side sees the other's value.
    Due.store(When);
    if (When >= NextLook->load()) [[likely]]
      return Error::success();
    return alert(When);
  }

  /// Call after an evaluation. Returns whether it was interrupted.
  bool end() { return Due.exchange(Idle) == Interrupted && acknowledge(); }

private:
  friend class Watchdog;
  using Ticks = Deadline::Clock::rep;

  /// The value outside begin() and end().
  static constexpr Ticks Idle = std::numeric_limits<Ticks>::max();
  static constexpr Ticks Interrupted = std::numeric_limits<Ticks>::min();
  /// Used while there is no thread.
  static constexpr std::atomic<Ticks> NoLook{Idle};

  Error alert(Ticks When);
  bool acknowledge();

  Interruptible &Target;
  /// When the evaluation is due, or Idle, or Interrupted.
  std::atomic<Ticks> Due = Idle;
  const std::atomic<Ticks> *NextLook = &NoLook;
  std::shared_ptr<Watchdog> Dog;
};

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_WATCHDOG_H
