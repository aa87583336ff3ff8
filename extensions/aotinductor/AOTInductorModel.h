//===- AOTInductorModel.h - Models that PyTorch has compiled ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The scheme "aoti", an extension as a user would write it: over the public
/// headers and libtorch. docs/extending-runtimes.md walks through its
/// neighbour, TVM's.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_AOTINDUCTORMODEL_H
#define MLCOMPILERBRIDGE_AOTINDUCTORMODEL_H

#include "MLCompilerBridge/Extend/RunnerFactory.h"

namespace MLBridge {

/// Adds `aoti:PACKAGE.pt2`: what `mlbridge.runtimes.aotinductor` has written.
void addAOTInductor(RunnerFactory &Factory);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_AOTINDUCTORMODEL_H
