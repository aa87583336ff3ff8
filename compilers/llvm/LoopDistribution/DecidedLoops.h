//===- DecidedLoops.h - Marks of decided loops ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Marks the loops about which a policy has decided. A later run of the pass,
/// for example at link time, does not change these loops.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_DECIDEDLOOPS_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_DECIDEDLOOPS_H

#include "llvm/ADT/SmallVector.h"

namespace llvm {
class Loop;
class LoopInfo;
} // namespace llvm

namespace MLBridge {

/// Adds the mark to the metadata of \p L.
void markDecided(llvm::Loop &L);

/// Returns the innermost loops without a mark and without pragmas about loop
/// transformations.
llvm::SmallVector<llvm::Loop *, 8> undecidedLoops(llvm::LoopInfo &LI);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_DECIDEDLOOPS_H
