//===- TVMModel.h - Models compiled by Apache TVM ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The scheme "tvm", an example of a user's extension. It uses only public
/// headers of this library and of TVM. docs/guides/extending-runtimes.md
/// explains the code.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TVMMODEL_H
#define MLCOMPILERBRIDGE_TVMMODEL_H

#include "MLCompilerBridge/Extend/RunnerFactory.h"

namespace MLBridge {

/// Adds `tvm:LIBRARY.so`, for libraries that mlbridge.runtimes.tvm has
/// compiled. The first model loads TVM's runtime. The option `runtime=PATH`
/// names the runtime. Without the option, the dynamic linker searches for
/// libtvm_runtime.so.
void addTVM(RunnerFactory &Factory);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TVMMODEL_H
