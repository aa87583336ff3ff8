//===- EnvironmentPass.h - Lets a trainer drive opt -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The pass `mlbridge-phase-ordering-environment`. While the pass runs, opt
/// serves a PhaseOrderingEnvironment to a trainer, until the trainer closes the
/// environment:
/// \code
///   opt -load-pass-plugin=MLBridgeLLVM.so -mlbridge-environment=shm:trainer
///       -passes=mlbridge-phase-ordering-environment -disable-output /dev/null
/// \endcode
/// The pass does not change the module that opt has read. Each episode names
/// the file of its own module.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_ENVIRONMENTPASS_H
#define MLBRIDGE_LLVM_PHASEORDERING_ENVIRONMENTPASS_H

#include "Pipeline/RegisterInside.h"

namespace MLBridge {

/// Registers the pass. \p Register adds other optimisations to the passes of an
/// episode.
void registerPhaseOrderingEnvironment(llvm::PassBuilder &PB,
                                      RegisterInsideOf Register);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_ENVIRONMENTPASS_H
