//===- Signals.h - Ctrl-C while the library waits ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Signals: ends a wait of the library when a signal handler of Python raises
/// an exception, or when the interpreter ends. Python runs its handlers in the
/// main thread, which would otherwise be in the library; and a thread that is
/// there when the interpreter ends keeps for ever what it uses.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_PYTHON_SIGNALS_H
#define MLBRIDGE_PYTHON_SIGNALS_H

#include "MLCompilerBridge/Deadline.h"

#include <nanobind/nanobind.h>
#include <optional>

namespace MLBridge::Python {

/// For one call, made by a thread that has let go of the GIL:
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
  /// With the GIL, as all but isRequested().
  Signals();
  bool isRequested() override;
  /// Raises what a handler has raised, if one has; SystemExit where the
  /// interpreter ends, which ends this thread without a word.
  void rethrow();

private:
  Deadline::Clock::time_point LastLook;
  std::optional<nanobind::python_error> Raised;
};

/// Binds end_waits(), for mlbridge.ending. Each module has its own.
void bindSignals(nanobind::module_ &M);

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_SIGNALS_H
