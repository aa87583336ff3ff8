//===- Schemes.h - The schemes of the C library -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Selects the schemes for runners and trainers in the C library.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_C_SCHEMES_H
#define MLBRIDGE_LIB_C_SCHEMES_H

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/Training/EnvironmentServer.h"

namespace MLBridge::C {

/// Creates a factory with the schemes that are linked into the library. Other
/// schemes are in modules (RunnerModule.h).
RunnerFactory makeRunnerFactory();
EnvironmentServer makeEnvironmentServer();

} // namespace MLBridge::C

#endif // MLBRIDGE_LIB_C_SCHEMES_H
