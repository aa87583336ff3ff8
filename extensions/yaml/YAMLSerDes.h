//===- YAMLSerDes.h - Tensors as YAML ---------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The SerDes "yaml", an extension as a user would write it: over the public
/// headers and libyaml. docs/extending-serdes.md says what it has to promise.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_YAMLSERDES_H
#define MLCOMPILERBRIDGE_YAMLSERDES_H

#include "MLCompilerBridge/SerDes/SerDesFactory.h"

namespace MLBridge {

/// Adds "yaml": for people, who read small tensors as numbers.
void addYAML(SerDesFactory &Formats);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_YAMLSERDES_H
