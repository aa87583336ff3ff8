//===- Schemes.h - What specs may name in C -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The runners and trainers of this build, for the C library.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_C_SCHEMES_H
#define MLBRIDGE_LIB_C_SCHEMES_H

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/Training/EnvironmentServer.h"

namespace MLBridge::C {

/// Knows what is linked into the library; what is not comes from modules
/// (RunnerModule.h).
RunnerFactory makeRunnerFactory();
EnvironmentServer makeEnvironmentServer();

} // namespace MLBridge::C

#endif // MLBRIDGE_LIB_C_SCHEMES_H
