//===- Signals.cpp - Ctrl-C while the library waits -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Signals.h"

#include <atomic>
#include <unordered_set>

namespace nb = nanobind;

namespace MLBridge::Python {

/// The state of the process's only interpreter.
namespace {
struct {
  /// The threads that have waited in this module. They are joined at shutdown.
  std::unordered_set<unsigned long> Users;
  unsigned long LastUser = 0;
  /// The thread that shuts the interpreter down, or 0 before shutdown.
  std::atomic<unsigned long> Ender = 0;
} State;
} // namespace

static bool isEnding() {
  const unsigned long Ender = State.Ender.load(std::memory_order_relaxed);
  return Ender != 0 && Ender != PyThread_get_thread_ident();
}

Signals::Signals() {
  const unsigned long Thread = PyThread_get_thread_ident();
  if (Thread == State.LastUser)
    return;
  State.LastUser = Thread;
  State.Users.insert(Thread);
}

bool Signals::isRequested() {
  // Return before acquiring the GIL, because during shutdown the GIL may never
  // become available.
  if (Raised || isEnding())
    return true;
  // Do not acquire the GIL for each piece of a long message, because another
  // thread may hold it for 5 ms each time.
  const Deadline::Clock::time_point Now = Deadline::Clock::now();
  if (Now - LastLook < Interval / 2)
    return false;
  LastLook = Now;
  nb::gil_scoped_acquire Hold;
  if (PyErr_CheckSignals() == 0)
    return false;
  Raised.emplace();
  return true;
}

void Signals::rethrow() {
  if (Raised)
    throw *std::exchange(Raised, std::nullopt);
  if (!isEnding())
    return;
  PyErr_SetNone(PyExc_SystemExit);
  throw nb::python_error();
}

/// Ends the current and future waits of all other threads.
static nb::list endWaits() {
  State.Ender = PyThread_get_thread_ident();
  nb::list Users;
  for (unsigned long Thread : State.Users)
    Users.append(Thread);
  return Users;
}

void bindSignals(nb::module_ &M) {
  M.def("end_waits", endWaits, nb::sig("def end_waits() -> list[int]"),
        "Makes waiting calls of all other threads raise SystemExit, for the "
        "shutdown of the interpreter. Returns the IDs of all threads that "
        "have waited.");
}

} // namespace MLBridge::Python
