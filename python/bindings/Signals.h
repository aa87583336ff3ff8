//===- Signals.h - Ctrl-C while the library waits ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Signals: ends a wait of the library when a Python signal handler raises an
/// exception, or when the interpreter shuts down. Python runs signal handlers
/// in the main thread, which a wait would block. A thread that still waits when
/// the interpreter shuts down would never free what it uses.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_PYTHON_SIGNALS_H
#define MLBRIDGE_PYTHON_SIGNALS_H

#include "MLCompilerBridge/Deadline.h"

#include <nanobind/nanobind.h>
#include <optional>

namespace MLBridge::Python {

/// Interrupts one wait of a thread that has released the GIL:
/// \code
///   Signals Heard;
///   {
///     nb::gil_scoped_release Release;
///     Error E = wait(Deadline::in(Timeout).unless(Heard));
///   }
///   Heard.rethrow();
/// \endcode
class Signals final : public Interrupt {
public:
  /// Needs the GIL, like all functions except isRequested().
  Signals();
  bool isRequested() override;
  /// Raises the exception of a signal handler, if any. While the interpreter
  /// shuts down it raises SystemExit, which ends this thread silently.
  void rethrow();

private:
  Deadline::Clock::time_point LastLook;
  std::optional<nanobind::python_error> Raised;
};

/// Binds end_waits(), for mlbridge.ending. Each extension module has its own.
void bindSignals(nanobind::module_ &M);

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_SIGNALS_H
