//===- EnvironmentPass.h - Lets a trainer drive opt -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The pass `mlbridge-phase-ordering-environment`: opt serves a
/// PhaseOrderingEnvironment until its trainer has finished:
/// \code
///   opt -load-pass-plugin=MLBridgeLLVM.so -mlbridge-environment=shm:trainer
///       -passes=mlbridge-phase-ordering-environment -disable-output /dev/null
/// \endcode
/// The module given to opt does not change; each episode names its own module.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_ENVIRONMENTPASS_H
#define MLBRIDGE_LLVM_PHASEORDERING_ENVIRONMENTPASS_H

#include "PhaseOrdering/RegisterInside.h"

namespace MLBridge {

/// Registers the pass. Programs are optimised with the additions of \p
/// Register.
void registerPhaseOrderingEnvironment(llvm::PassBuilder &PB,
                                      RegisterInsideOf Register);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_ENVIRONMENTPASS_H
