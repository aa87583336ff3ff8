//===- ModuleCounts.cpp - Counts the parts of a module --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Counts the whole module again at each call. One traversal is enough, and it
/// is much faster than any LLVM pass on the module.
///
//===----------------------------------------------------------------------===//

#include "PhaseOrdering/ModuleCounts.h"

#include "IR2Vec/IREntities.h"

#include "llvm/ADT/DepthFirstIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace MLBridge {

using Counters = std::array<std::uint64_t, ModuleCounts::NumKinds>;

/// Returns the kind of \p Call. The result is empty for inline assembly,
/// because inline assembly calls no function.
static std::optional<ModuleCounts::Kind> kindOfCall(const CallBase &Call) {
  if (Call.isInlineAsm())
    return std::nullopt;
  if (Call.isIndirectCall())
    return ModuleCounts::IndirectCalls;
  const auto *Callee = dyn_cast<Function>(
      Call.getCalledOperand()->stripPointerCastsAndAliases());
  if (!Callee)
    return ModuleCounts::ExternalCalls;
  if (Callee->isIntrinsic())
    return ModuleCounts::IntrinsicCalls;
  return Callee->isDeclaration() ? ModuleCounts::ExternalCalls
                                 : ModuleCounts::InternalCalls;
}

static void count(const BasicBlock &Block, Counters &Into) {
  ++Into[ModuleCounts::Blocks];
  Into[ModuleCounts::Joins] += pred_size(&Block) > 1;
  Into[ModuleCounts::Branches] += succ_size(&Block) > 1;
  for (const Instruction &I : Block) {
    if (isWithoutEntities(I))
      continue;
    ++Into[ModuleCounts::Instructions];
    Into[ModuleCounts::ConstantIntegers] +=
        count_if(I.operands(),
                 [](const Use &Operand) { return isa<ConstantInt>(Operand); });
    if (const auto *Call = dyn_cast<CallBase>(&I))
      if (std::optional<ModuleCounts::Kind> Kind = kindOfCall(*Call))
        ++Into[*Kind];
  }
}

ModuleCounts ModuleCounts::of(const Module &M) {
  Counters Counted{};
  for (const Function &F : M) {
    if (F.isDeclaration())
      continue;
    ++Counted[Functions];
    Counted[InternalFunctions] += F.hasLocalLinkage();
    for (const BasicBlock *Block : depth_first(&F))
      count(*Block, Counted);
  }
  Counted[Globals] = count_if(
      M.globals(), [](const GlobalVariable &G) { return G.hasInitializer(); });

  ModuleCounts Result;
  llvm::transform(Counted, Result.Values.begin(),
                  [](std::uint64_t N) { return static_cast<float>(N); });
  Result.NumInstructions = Counted[Instructions];
  return Result;
}

} // namespace MLBridge
