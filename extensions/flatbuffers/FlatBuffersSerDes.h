//===- FlatBuffersSerDes.h - Tensors as FlatBuffers -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The SerDes "flatbuffers", an example of a user's extension. It uses only
/// public headers, and flatc's output for tensors.fbs.
/// docs/guides/extending-serdes.md explains the code.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_FLATBUFFERSSERDES_H
#define MLCOMPILERBRIDGE_FLATBUFFERSSERDES_H

#include "MLCompilerBridge/SerDes/SerDesFactory.h"

namespace MLBridge {

/// Adds the format "flatbuffers". Its messages follow tensors.fbs, and readers
/// use the tensors in place.
void addFlatBuffers(SerDesFactory &Formats);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_FLATBUFFERSSERDES_H
