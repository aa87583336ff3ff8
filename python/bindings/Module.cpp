//===- Module.cpp - mlbridge._core ------------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the module mlbridge._core.
///
//===----------------------------------------------------------------------===//

#define MLBRIDGE_IMPORTS_NUMPY
#include "Bindings.h"
#include "Errors.h"
#include "NumPy.h"
#include "Signals.h"
#include "ToPython.h"

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "Support/PrintableText.h"

namespace nb = nanobind;

using namespace MLBridge;
using namespace MLBridge::Python;

static nb::dict schemes() {
  RunnerFactory Factory;
  nb::dict ByName;
  for (const RunnerFactory::Scheme &S : Factory.schemes())
    ByName[toStr(S.Name)] = toStr(S.Help);
  return ByName;
}

/// Binds printable(). A lone surrogate is replaced by its escape sequence, such
/// as \udcff.
static nb::object printableText(const nb::str &Text, std::size_t Most) {
  nb::object Bytes = nb::steal(
      PyUnicode_AsEncodedString(Text.ptr(), "utf-8", "backslashreplace"));
  if (!Bytes.is_valid())
    throw nb::python_error();
  return toStr(
      printable({PyBytes_AS_STRING(Bytes.ptr()),
                 static_cast<std::size_t>(PyBytes_GET_SIZE(Bytes.ptr()))},
                Most));
}

NB_MODULE(_core, M) {
  if (_import_array() < 0)
    throw nb::python_error();
  M.doc() = "The bindings of the C++ library that compilers link.";
  M.attr("VERSION") = MLBRIDGE_VERSION;
  M.attr("COMPILER") = MLBRIDGE_COMPILER;
  M.attr("SIMDJSON_VERSION") = MLBRIDGE_SIMDJSON_VERSION;
  M.def(
      "schemes", schemes, nb::sig("def schemes() -> dict[str, str]"),
      "The schemes of model specs in this build, with one line of help each.");
  M.def("set_leak_warnings", nb::set_leak_warnings, nb::arg("value"),
        "Turns reports of leaked objects at interpreter shutdown on or off.");
  M.def("printable", printableText, nb::arg("text"),
        nb::arg("most") = MostPrinted,
        nb::sig("def printable(text: str, most: int = 200) -> str"),
        "Returns an external text as one line of at most `most` bytes of "
        "UTF-8, with control characters escaped. A longer text keeps its "
        "beginning and end.");
  bindFormats(M);
  bindListeners(M);
  bindServer(M);
  bindSignals(M);
  bindRunner(M);
  bindInProcess(M);
  bindCodec(M);
}
