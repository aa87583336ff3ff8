//===- TVMModel.h - Models compiled by Apache TVM ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The scheme "tvm", written like a user's extension, with the public headers
/// and TVM's. docs/guides/extending-runtimes.md explains it.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TVMMODEL_H
#define MLCOMPILERBRIDGE_TVMMODEL_H

#include "MLCompilerBridge/Extend/RunnerFactory.h"

namespace MLBridge {

/// Adds `tvm:LIBRARY.so`, for libraries of mlbridge.runtimes.tvm. The first
/// model loads TVM's runtime: `?runtime=PATH`, or else libtvm_runtime.so
/// wherever the dynamic linker finds it.
void addTVM(RunnerFactory &Factory);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TVMMODEL_H
