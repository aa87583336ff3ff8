//===- AOTInductorModel.h - Models compiled by PyTorch ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The scheme "aoti", written like a user's extension, with the public headers
/// and libtorch. docs/guides/extending-runtimes.md explains the similar TVM
/// extension.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_AOTINDUCTORMODEL_H
#define MLCOMPILERBRIDGE_AOTINDUCTORMODEL_H

#include "MLCompilerBridge/Extend/RunnerFactory.h"

namespace MLBridge {

/// Adds `aoti:PACKAGE.pt2`, for packages of `mlbridge.runtimes.aotinductor`.
void addAOTInductor(RunnerFactory &Factory);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_AOTINDUCTORMODEL_H
