//===- FlatBuffersSerDes.h - Tensors as a FlatBuffer ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The SerDes "flatbuffers", an extension as a user would write it: over the
/// public headers, and what flatc makes of tensors.fbs.
/// docs/extending-serdes.md walks through it.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_FLATBUFFERSSERDES_H
#define MLCOMPILERBRIDGE_FLATBUFFERSSERDES_H

#include "MLCompilerBridge/SerDes/SerDesFactory.h"

namespace MLBridge {

/// Adds "flatbuffers": the messages of tensors.fbs, read where they lie.
void addFlatBuffers(SerDesFactory &Formats);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_FLATBUFFERSSERDES_H
