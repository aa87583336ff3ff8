//===- EnvironmentPass.h - A compiler that is driven by a trainer -*- C++
//-*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The pass `mlbridge-phase-ordering-environment`, in which opt serves a
/// PhaseOrderingEnvironment until its trainer is done:
/// \code
///   opt -load-pass-plugin=MLBridgeLLVM.so -mlbridge-environment=shm:trainer
///       -passes=mlbridge-phase-ordering-environment -disable-output /dev/null
/// \endcode
/// The module that opt was given stays as it is; each episode names its own.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_ENVIRONMENTPASS_H
#define MLBRIDGE_LLVM_PHASEORDERING_ENVIRONMENTPASS_H

#include "PhaseOrdering/RegisterInside.h"

namespace MLBridge {

/// Programs are optimised with what \p Register adds.
void registerPhaseOrderingEnvironment(llvm::PassBuilder &PB,
                                      RegisterInsideOf Register);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_ENVIRONMENTPASS_H
