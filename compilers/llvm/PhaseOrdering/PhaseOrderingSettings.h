//===- PhaseOrderingSettings.h - The rules of an episode --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The settings of an episode. Training and inference share them.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGSETTINGS_H
#define MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGSETTINGS_H

#include "PhaseOrdering/Program.h"

#include <cstddef>

namespace MLBridge {

struct PhaseOrderingSettings {
  ProgramSettings Programs;
  /// True if there is a stop action, which ends the episode. Its index follows
  /// the last action of the space.
  bool WithStop = false;
  /// The maximum number of actions in an episode.
  unsigned Steps = 15;
  /// If not 0, the first `Lookahead` actions are tried without generating
  /// machine code. The model scores each resulting state, and the action with
  /// the highest score is chosen. Lookahead requires episodes of one action. If
  /// 0, the model chooses an action without trying it.
  unsigned Lookahead = 0;
  /// If true, measures are relative to the program before the first action. If
  /// false, measures are relative to the program after -Oz.
  bool RelativeToInitial = false;
  /// The number of programs kept in memory.
  std::size_t KeptPrograms = 16;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGSETTINGS_H
