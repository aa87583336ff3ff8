//===- YAMLSerDes.h - Tensors as YAML ---------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The SerDes "yaml", an example of a user's extension. It uses only public
/// headers, and libyaml. docs/guides/extending-serdes.md lists the
/// requirements.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_YAMLSERDES_H
#define MLCOMPILERBRIDGE_YAMLSERDES_H

#include "MLCompilerBridge/SerDes/SerDesFactory.h"

namespace MLBridge {

/// Adds the format "yaml", in which people can read small tensors as numbers.
void addYAML(SerDesFactory &Formats);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_YAMLSERDES_H
