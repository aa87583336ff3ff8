//===- TVMModel.h - Models that Apache TVM has compiled ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The scheme "tvm", an extension as a user would write it: over the public
/// headers and TVM's. docs/extending-runtimes.md walks through it.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TVMMODEL_H
#define MLCOMPILERBRIDGE_TVMMODEL_H

#include "MLCompilerBridge/Extend/RunnerFactory.h"

namespace MLBridge {

/// Adds `tvm:LIBRARY.so`: what mlbridge.runtimes.tvm has made. TVM's
/// runtime is loaded with the first model: `?runtime=PATH`, else
/// libtvm_runtime.so wherever the loader finds it.
void addTVM(RunnerFactory &Factory);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TVMMODEL_H
