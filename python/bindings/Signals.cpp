//===- Signals.cpp - Ctrl-C while the library waits -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Signals.h"

namespace nb = nanobind;

namespace MLBridge::Python {

bool Signals::isRequested() {
  if (Raised)
    return true;
  // A long message arrives in many pieces. The GIL is not taken for each:
  // another thread may hold it for 5 ms every time.
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
}

} // namespace MLBridge::Python
