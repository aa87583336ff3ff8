//===- LoopAnalyses.cpp - The analyses of a function's loops --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implements queries to LLVM's analyses.
///
//===----------------------------------------------------------------------===//

#include "LoopDistribution/LoopAnalyses.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/IVDescriptors.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Metadata.h"

#include <algorithm>

using namespace llvm;

namespace MLBridge {

/// True if a call in \p F may call \p F again.
static bool mayRecurse(const Function &F) {
  return !F.doesNotRecurse() &&
         any_of(instructions(F), [](const Instruction &I) {
           const auto *Call = dyn_cast<CallBase>(&I);
           return Call && !isa<IntrinsicInst>(Call) && !Call->isInlineAsm() &&
                  !Call->hasFnAttr(Attribute::NoRecurse) &&
                  !Call->hasFnAttr(Attribute::NoCallback);
         });
}

static constexpr char ArrayMark[] = "mlbridge.loop.array";

void markArray(AllocaInst &Array) {
  Array.setMetadata(ArrayMark, MDNode::get(Array.getContext(), {}));
}

/// Returns the total size in bytes of the arrays with a mark.
static std::uint64_t markedArraysOf(const Function &F) {
  std::uint64_t Sum = 0;
  for (const Instruction &I : F.getEntryBlock())
    if (const auto *Array = dyn_cast<AllocaInst>(&I);
        Array && Array->getMetadata(ArrayMark))
      if (const auto Size = Array->getAllocationSize(F.getDataLayout()))
        Sum += Size->getFixedValue();
  return Sum;
}

std::uint64_t arrayBudgetOf(const Function &F) {
  // LLVM's inliner has the same limit for the stack of a recursive function.
  // Functions without a red zone are usually in a kernel, whose stack is small.
  constexpr std::uint64_t Small = 1024, Large = std::uint64_t(1) << 15;
  const bool IsSmall = mayRecurse(F) || F.hasFnAttribute(Attribute::NoRedZone);
  // This attribute is the limit of -Wframe-larger-than.
  const std::uint64_t Warned =
      F.getFnAttributeAsParsedInteger("warn-stack-size", 2 * Large);
  const std::uint64_t Total = std::min(IsSmall ? Small : Large, Warned / 2);
  return Total - std::min(Total, markedArraysOf(F));
}

PhiKinds kindsOf(PHINode &Phi, Loop &L, const LoopAnalyses &Analyses) {
  PhiKinds Kinds;
  InductionDescriptor Inducted;
  Kinds.IsInduction =
      InductionDescriptor::isInductionPHI(&Phi, &L, &Analyses.SE, Inducted);
  Kinds.IsFixedOrder =
      RecurrenceDescriptor::isFixedOrderRecurrence(&Phi, &L, &Analyses.DT);
  RecurrenceDescriptor Reduced;
  Kinds.IsReduction = RecurrenceDescriptor::isReductionPHI(
      &Phi, &L, Reduced, &Analyses.DB, &Analyses.AC, &Analyses.DT,
      &Analyses.SE);
  Kinds.IsOrdered = Kinds.IsReduction && Reduced.getExactFPMathInst();
  return Kinds;
}

PHINode *headerPhi(Instruction &I, const Loop &L) {
  auto *Phi = dyn_cast<PHINode>(&I);
  return Phi && Phi->getParent() == L.getHeader() ? Phi : nullptr;
}

bool isUsedAfter(const Instruction &I, const Loop &L) {
  return any_of(I.users(), [&](const User *U) {
    return !L.contains(cast<Instruction>(U));
  });
}

bool isConditional(const BasicBlock &Block, const Loop &L,
                   const DominatorTree &DT) {
  return !DT.dominates(&Block, L.getLoopLatch());
}

double cyclesOf(const Instruction &I, const LoopAnalyses &Analyses) {
  return cyclesOf(Analyses.TTI.getInstructionCost(
      &I, TargetTransformInfo::TCK_RecipThroughput));
}

double latencyOf(const Instruction &I, const LoopAnalyses &Analyses) {
  return cyclesOf(
      Analyses.TTI.getInstructionCost(&I, TargetTransformInfo::TCK_Latency));
}

double cyclesOf(InstructionCost Cost) {
  return Cost.isValid() ? double(Cost.getValue()) : 0.0;
}

std::uint64_t vectorRegisterBits(const LoopAnalyses &Analyses) {
  return Analyses.TTI
      .getRegisterBitWidth(TargetTransformInfo::RGK_FixedWidthVector)
      .getFixedValue();
}

std::uint64_t registerBits(const LoopAnalyses &Analyses) {
  const std::uint64_t Scalar =
      Analyses.TTI.getRegisterBitWidth(TargetTransformInfo::RGK_Scalar)
          .getFixedValue();
  return std::max({vectorRegisterBits(Analyses), Scalar, std::uint64_t(1)});
}

} // namespace MLBridge
