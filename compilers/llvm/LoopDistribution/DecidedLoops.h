//===- DecidedLoops.h - Loops that are decided about ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Marks the loops about which a policy has decided, so that a later run of the
/// pass, for example at link time, leaves them as they are.
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

/// Adds the mark, which is metadata of the loop.
void markDecided(llvm::Loop &L);

/// Returns the innermost loops that have no mark, and about which the source
/// contains no pragmas.
llvm::SmallVector<llvm::Loop *, 8> undecidedLoops(llvm::LoopInfo &LI);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_DECIDEDLOOPS_H
