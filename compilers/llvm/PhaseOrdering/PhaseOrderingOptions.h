//===- PhaseOrderingOptions.h - Phase ordering's command line ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The options of phase ordering, as what they mean.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGOPTIONS_H
#define MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGOPTIONS_H

#include "PhaseOrdering/PhaseOrderingEnvironment.h"

namespace MLBridge {

/// What an environment is made with, and what its observations are. The errors
/// are those of ActionSpace, RewardFunction and Observation.
struct PhaseOrderingSetup {
  PhaseOrderingSettings Settings;
  Observation Features;

  static Expected<PhaseOrderingSetup> fromOptions();
};

/// `-mlbridge-environment=SPEC`: where the trainer is; else the variable
/// MLBRIDGE_SPEC. Empty where neither says so.
std::string environmentSpec();

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGOPTIONS_H
