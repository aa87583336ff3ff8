//===- Formats.h - Every SerDes of this build -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_SUPPORT_FORMATS_H
#define MLBRIDGE_TESTS_SUPPORT_FORMATS_H

#include "MLCompilerBridge/SerDes/SerDesFactory.h"

namespace MLBridge::test {

/// Returns the formats of Core and of all enabled components.
SerDesFactory allFormats();

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_SUPPORT_FORMATS_H
