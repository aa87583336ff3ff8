//===- PhaseOrderingSettings.h - What an episode is made with ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What training and inference share: the rules of an episode.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGSETTINGS_H
#define MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGSETTINGS_H

#include "PhaseOrdering/Program.h"

#include <cstddef>

namespace MLBridge {

struct PhaseOrderingSettings {
  ProgramSettings Programs;
  /// Whether the last action, after those of the space, is to stop.
  bool WithStop = false;
  /// How many actions an episode may have.
  unsigned Steps = 15;
  /// So many of the first actions are tried without machine code, and the one
  /// taken whose state the model values most; 0: it is asked before. Only where
  /// an episode is one action.
  unsigned Lookahead = 0;
  /// Whether a measure's share is that in the program before the first action;
  /// else it is that in what -Oz makes of the program.
  bool RelativeToInitial = false;
  /// How many programs are kept in memory.
  std::size_t KeptPrograms = 16;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGSETTINGS_H
