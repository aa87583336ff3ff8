//===- Errors.h - A C++ Error as a Python exception -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Failures cross into Python as the exceptions of mlbridge/errors.py, one for
/// each ErrorCode.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_PYTHON_ERRORS_H
#define MLBRIDGE_PYTHON_ERRORS_H

#include "MLCompilerBridge/Error.h"

#include <nanobind/nanobind.h>

namespace MLBridge::Python {

/// The exception object for \p E, not raised.
nanobind::object exceptionFor(const Error &E);

/// Raises \p Exception, or that for \p E.
[[noreturn]] void raise(const nanobind::object &Exception);
[[noreturn]] void raise(const Error &E);

/// The value, or raises the error.
template <typename T> T valueOrRaise(Expected<T> Result) {
  if (!Result)
    raise(Result.takeError());
  return std::move(*Result);
}

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_ERRORS_H
