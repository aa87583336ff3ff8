//===- Signals.h - Ctrl-C while the library waits ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines Signals, which ends a wait of the library in two cases. In the first
/// case, a Python signal handler raises an exception. Python runs signal
/// handlers in the main thread, so a waiting main thread must run them itself.
/// In the second case, the interpreter shuts down. A thread that is still
/// waiting at the end of the shutdown would never free its resources.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_PYTHON_SIGNALS_H
#define MLBRIDGE_PYTHON_SIGNALS_H

#include "MLCompilerBridge/Deadline.h"

#include <nanobind/nanobind.h>
#include <optional>

namespace MLBridge::Python {

/// Interrupts one wait of a thread that has released the GIL. Use it as
/// follows:
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
  /// The caller must hold the GIL for all functions except isRequested().
  Signals();
  bool isRequested() override;
  /// If a signal handler has raised an exception, raises it again. While the
  /// interpreter shuts down, raises SystemExit, which ends this thread without
  /// a message.
  void rethrow();

private:
  Deadline::Clock::time_point LastLook;
  std::optional<nanobind::python_error> Raised;
};

/// Binds the Python function end_waits(), which mlbridge.ending calls. Each
/// extension module has its own end_waits().
void bindSignals(nanobind::module_ &M);

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_SIGNALS_H
