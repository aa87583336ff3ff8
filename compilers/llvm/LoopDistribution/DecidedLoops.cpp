//===- DecidedLoops.cpp - Marks of decided loops --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads and writes the metadata of loops.
///
//===----------------------------------------------------------------------===//

#include "LoopDistribution/DecidedLoops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Metadata.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace MLBridge {

static constexpr char Mark[] = "mlbridge.loop.decided";

/// The prefixes of the metadata that pragmas and LLVM's transformations add.
static constexpr StringLiteral PragmaPrefixes[] = {
    "llvm.loop.distribute.", "llvm.loop.vectorize.", "llvm.loop.interleave.",
    "llvm.loop.unroll.", "llvm.loop.isvectorized"};

static bool isMarkOrPragma(const MDOperand &Operand) {
  const auto *Node = dyn_cast_or_null<MDNode>(Operand);
  const auto *Name = Node && Node->getNumOperands() != 0
                         ? dyn_cast<MDString>(Node->getOperand(0))
                         : nullptr;
  if (!Name)
    return false;
  const StringRef Text = Name->getString();
  return Text == StringRef(Mark) || Text == "llvm.loop.disable_nonforced" ||
         any_of(PragmaPrefixes,
                [&](StringRef Prefix) { return Text.starts_with(Prefix); });
}

void markDecided(Loop &L) { addStringMetadataToLoop(&L, Mark, 1); }

SmallVector<Loop *, 8> undecidedLoops(LoopInfo &LI) {
  SmallVector<Loop *, 8> Result;
  for (Loop *L : LI.getLoopsInPreorder()) {
    const MDNode *Properties = L->getLoopID();
    if (L->isInnermost() &&
        !(Properties &&
          any_of(drop_begin(Properties->operands()), isMarkOrPragma)))
      Result.push_back(L);
  }
  return Result;
}

} // namespace MLBridge
