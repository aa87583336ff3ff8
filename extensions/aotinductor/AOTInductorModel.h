//===- AOTInductorModel.h - Models compiled by PyTorch ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The scheme "aoti", an example of a user's extension. It uses only public
/// headers of this library, and libtorch. docs/guides/extending-runtimes.md
/// explains the similar extension for TVM.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_AOTINDUCTORMODEL_H
#define MLCOMPILERBRIDGE_AOTINDUCTORMODEL_H

#include "MLCompilerBridge/Extend/RunnerFactory.h"

namespace MLBridge {

/// Adds `aoti:PACKAGE.pt2`, for packages that mlbridge.runtimes.aotinductor has
/// compiled.
void addAOTInductor(RunnerFactory &Factory);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_AOTINDUCTORMODEL_H
