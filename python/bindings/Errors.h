//===- Errors.h - A C++ Error as a Python exception -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Converts an Error to an exception of mlbridge/errors.py, which has one class
/// for each ErrorCode.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_PYTHON_ERRORS_H
#define MLBRIDGE_PYTHON_ERRORS_H

#include "MLCompilerBridge/Error.h"

#include <nanobind/nanobind.h>

namespace MLBridge::Python {

/// Returns the Python exception that corresponds to \p E, without raising it.
nanobind::object exceptionFor(const Error &E);

/// Raises \p Exception, or the exception that corresponds to \p E.
[[noreturn]] void raise(const nanobind::object &Exception);
[[noreturn]] void raise(const Error &E);

/// Returns the value of \p Result, or raises its error.
template <typename T> T valueOrRaise(Expected<T> Result) {
  if (!Result)
    raise(Result.takeError());
  return std::move(*Result);
}

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_ERRORS_H
