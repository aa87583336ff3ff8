//===- FlatBuffers.cpp - mlbridge._format_flatbuffers -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FlatBuffersSerDes.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

// The macro declares the parameter.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
NB_MODULE(_format_flatbuffers, M) {
  M.doc() = "FlatBuffers for mlbridge.";
  // Import _core, which defines the class Format.
  nb::module_::import_("mlbridge._core");
  MLBridge::SerDesFactory Formats;
  MLBridge::addFlatBuffers(Formats);
  M.attr("FORMAT") = nb::cast(Formats.formats().back());
}
