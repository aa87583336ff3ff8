//===- Formats.h - Every SerDes that Python may name ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The SerDes formats of this build. A format that needs a library has its own
/// extension module, mlbridge._format_NAME. The module's attribute FORMAT is a
/// SerDesFactory::Format. The module is imported only when the format is first
/// used, because TensorFlow or Ray may have loaded another version of the same
/// library.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_PYTHON_FORMATS_H
#define MLBRIDGE_PYTHON_FORMATS_H

#include "MLCompilerBridge/SerDes/SerDesFactory.h"

#include <nanobind/nanobind.h>

namespace MLBridge::Python {

/// Returns a factory with the formats of this build and the formats in \p More,
/// which is a sequence of Format.
SerDesFactory formatsWith(nanobind::handle More);

} // namespace MLBridge::Python

#endif // MLBRIDGE_PYTHON_FORMATS_H
