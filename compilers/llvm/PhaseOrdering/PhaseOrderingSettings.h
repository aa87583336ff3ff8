//===- PhaseOrderingSettings.h - The rules of an episode --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The rules of an episode, shared by training and inference.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGSETTINGS_H
#define MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGSETTINGS_H

#include "PhaseOrdering/Program.h"

#include <cstddef>

namespace MLBridge {

struct PhaseOrderingSettings {
  ProgramSettings Programs;
  /// True if a last action, after those of the space, ends the episode.
  bool WithStop = false;
  /// The maximum number of actions in an episode.
  unsigned Steps = 15;
  /// If not 0, this many of the first actions are tried without generating
  /// machine code, and the action whose resulting state the model values most
  /// is taken. If 0, the model chooses without trying. Requires episodes of one
  /// action.
  unsigned Lookahead = 0;
  /// True: measures are relative to the program before the first action. False:
  /// to the program after -Oz.
  bool RelativeToInitial = false;
  /// The number of programs kept in memory.
  std::size_t KeptPrograms = 16;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGSETTINGS_H
