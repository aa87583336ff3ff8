//===- Errors.cpp - A C++ Error as a Python exception -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Errors.h"
#include "ToPython.h"

namespace nb = nanobind;

namespace MLBridge::Python {

nb::object exceptionFor(const Error &E) {
  return nb::module_::import_("mlbridge.errors")
      .attr("error_for")(toStr(errorCodeName(E.code())), toStr(E.message()));
}

void raise(const nb::object &Exception) {
  PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(Exception.ptr())),
                  Exception.ptr());
  throw nb::python_error();
}

void raise(const Error &E) { raise(exceptionFor(E)); }

} // namespace MLBridge::Python
