//===- YAML.cpp - mlbridge._format_yaml -------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "YAMLSerDes.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

// The macro declares the parameter.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
NB_MODULE(_format_yaml, M) {
  M.doc() = "YAML for mlbridge.";
  // Import _core, which defines the class Format.
  nb::module_::import_("mlbridge._core");
  MLBridge::SerDesFactory Formats;
  MLBridge::addYAML(Formats);
  M.attr("FORMAT") = nb::cast(Formats.formats().back());
}
