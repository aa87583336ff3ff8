//===- Watchdog.cpp - Interrupts late evaluations -------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InProcess/Watchdog.h"

#include "Support/Abandon.h"
#include "Support/PerProcess.h"

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <pthread.h>
#include <vector>

using namespace MLBridge;
using namespace MLBridge::inprocess;

namespace MLBridge::inprocess {

/// The thread, and the Watches that it serves.
class Watchdog {
public:
  using Ticks = Watch::Ticks;

  /// Returns the watchdog of this process. Starts it if necessary.
  static Expected<std::shared_ptr<Watchdog>> ofProcess();

  Watchdog() = default;
  ~Watchdog();
  Watchdog(const Watchdog &) = delete;
  Watchdog &operator=(const Watchdog &) = delete;

  void add(Watch &W);
  void remove(Watch &W);
  /// Makes the thread examine the Watches at the time \p When or earlier.
  void checkBy(Ticks When);
  /// Waits until no call of interrupt() is in progress.
  void waitForInterrupts() { const std::scoped_lock Lock(Mutex); }
  bool isForked() const { return Fork.isForked(); }

  /// The time at which the thread will examine the Watches next. It is Idle if
  /// the thread waits without a time limit.
  std::atomic<Ticks> NextCheck = Watch::Idle;

private:
  Error start();
  void watch();
  /// Interrupts the evaluations whose deadline has passed. Returns the earliest
  /// deadline of the other evaluations.
  Ticks interruptLate();

  const ForkDetector Fork;
  std::mutex Mutex;
  std::condition_variable Changed;
  std::vector<Watch *> Watches;
  bool Stopping = false;
  pthread_t Thread = {};
  bool HasThread = false;
};

} // namespace MLBridge::inprocess

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

namespace {

/// Blocks all signals of the calling thread, and of threads that it starts. The
/// compiler's signal handlers must not run in a thread that the compiler did
/// not start.
class NoSignals {
public:
  NoSignals() {
    sigset_t All;
    ::sigfillset(&All);
    ::pthread_sigmask(SIG_BLOCK, &All, &Before);
  }
  ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &Before, nullptr); }
  NoSignals(const NoSignals &) = delete;
  NoSignals &operator=(const NoSignals &) = delete;

private:
  sigset_t Before;
};

} // namespace

/// Starts the thread with pthread_create(). std::thread would throw if the
/// thread cannot be started.
Error Watchdog::start() {
  constexpr std::size_t StackSize = std::size_t(256) << 10;
  pthread_attr_t Attributes;
  if (int Why = ::pthread_attr_init(&Attributes))
    return Error::fromErrno(Why, "cannot start a thread");
  ::pthread_attr_setstacksize(&Attributes, StackSize);
  const NoSignals Blocked;
  auto Main = [](void *Self) -> void * {
    static_cast<Watchdog *>(Self)->watch();
    return nullptr;
  };
  const int Why = ::pthread_create(&Thread, &Attributes, Main, this);
  ::pthread_attr_destroy(&Attributes);
  if (Why != 0)
    return Error::fromErrno(Why, "cannot start the thread that interrupts late "
                                 "evaluations; timeout=inf needs no thread");
  ::pthread_setname_np(Thread, "mlbridge-watch");
  HasThread = true;
  return Error::success();
}

Watchdog::~Watchdog() {
  {
    const std::scoped_lock Lock(Mutex);
    Stopping = true;
  }
  Changed.notify_one();
  if (HasThread)
    ::pthread_join(Thread, nullptr);
}

Watchdog::Ticks Watchdog::interruptLate() {
  const Ticks Now = Deadline::Clock::now().time_since_epoch().count();
  Ticks Next = Watch::Idle;
  for (Watch *W : Watches) {
    Ticks Due = W->Due.load();
    if (Due == Watch::Idle || Due == Watch::Interrupted)
      continue;
    if (Due > Now)
      Next = std::min(Next, Due);
    // Interrupt the evaluation, unless it has ended in the meantime.
    else if (W->Due.compare_exchange_strong(Due, Watch::Interrupted))
      W->Target.interrupt();
  }
  return Next;
}

void Watchdog::watch() {
  std::unique_lock Lock(Mutex);
  while (!Stopping) {
    Ticks Next = interruptLate();
    // Check again after the store of NextCheck, until no earlier deadline
    // appears. An evaluation that began before the store is found by this
    // second check. An evaluation that begins after the store reads NextCheck,
    // and wakes this thread if necessary.
    for (;;) {
      NextCheck.store(Next);
      const Ticks Again = interruptLate();
      if (Again >= Next)
        break;
      Next = Again;
    }
    if (Next == Watch::Idle)
      Changed.wait(Lock);
    else
      Changed.wait_until(
          Lock, Deadline::Clock::time_point(Deadline::Clock::duration(Next)));
  }
}

//===----------------------------------------------------------------------===//
// Watches
//===----------------------------------------------------------------------===//

Expected<std::shared_ptr<Watchdog>> Watchdog::ofProcess() {
  struct Known {
    std::mutex Mutex;
    std::weak_ptr<Watchdog> Dog;
  };
  // Use one thread per process. One thread per model or runner would be too
  // many in a compiler with parallel back ends. Never destroy this object,
  // because runners may outlive a program's static objects.
  static PerProcess<Known> &Shared = *new PerProcess<Known>();
  Known &Here = Shared.get();
  const std::scoped_lock Lock(Here.Mutex);
  if (std::shared_ptr<Watchdog> Running = Here.Dog.lock())
    return Running;
  auto Started = std::make_shared<Watchdog>();
  if (Error E = Started->start())
    return E;
  Here.Dog = Started;
  return Started;
}

void Watchdog::add(Watch &W) {
  const std::scoped_lock Lock(Mutex);
  Watches.push_back(&W);
}

void Watchdog::remove(Watch &W) {
  const std::scoped_lock Lock(Mutex);
  std::erase(Watches, &W);
}

void Watchdog::checkBy(Ticks When) {
  {
    const std::scoped_lock Lock(Mutex);
    if (When >= NextCheck.load())
      return;
    // Store the new time, so that evaluations with later deadlines do not wake
    // the thread again.
    NextCheck.store(When);
  }
  Changed.notify_one();
}

Watch::~Watch() {
  if (!Dog)
    return;
  // In a forked child, do not destroy the parent's watchdog. The destructor
  // would wait for a thread that does not exist in the child.
  if (Dog->isForked())
    abandon(std::move(Dog));
  else
    Dog->remove(*this);
}

Error Watch::alert(Ticks When) {
  if (!Dog) {
    Expected<std::shared_ptr<Watchdog>> Found = Watchdog::ofProcess();
    if (!Found) {
      Due.store(Idle);
      return Found.takeError();
    }
    (*Found)->add(*this);
    Dog = std::move(*Found);
    NextCheck = &Dog->NextCheck;
  }
  Dog->checkBy(When);
  return Error::success();
}

bool Watch::acknowledge() {
  Dog->waitForInterrupts();
  Target.resume();
  return true;
}
