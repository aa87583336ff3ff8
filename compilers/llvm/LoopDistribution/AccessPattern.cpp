//===- AccessPattern.cpp - How a loop accesses memory ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Computes strides with ScalarEvolution.
///
//===----------------------------------------------------------------------===//

#include "LoopDistribution/AccessPattern.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace MLBridge {

static const SCEV *addressOf(const Instruction &Access, ScalarEvolution &SE) {
  return SE.getSCEV(const_cast<Value *>(getLoadStorePointerOperand(&Access)));
}

/// Returns the recurrence of \p Address in \p L, or null if the address does
/// not change by the same amount in each iteration.
static const SCEVAddRecExpr *recurrenceOf(const SCEV *Address, const Loop &L) {
  const auto *Recurrence = dyn_cast<SCEVAddRecExpr>(Address);
  const bool IsAffine =
      Recurrence && Recurrence->getLoop() == &L && Recurrence->isAffine();
  return IsAffine ? Recurrence : nullptr;
}

std::uint64_t accessedBytes(const Instruction &Access) {
  const TypeSize Size = Access.getDataLayout().getTypeStoreSize(
      getLoadStoreType(const_cast<Instruction *>(&Access)));
  return Size.isScalable() ? 0 : Size.getFixedValue();
}

Stride strideOf(const Instruction &Access, const Loop &L, ScalarEvolution &SE) {
  const SCEV *Address = addressOf(Access, SE);
  if (SE.isLoopInvariant(Address, &L))
    return Stride::Invariant;
  const SCEVAddRecExpr *Recurrence = recurrenceOf(Address, L);
  if (!Recurrence)
    return Stride::Irregular;
  const auto *Step = dyn_cast<SCEVConstant>(Recurrence->getStepRecurrence(SE));
  const bool IsNext = Step && Step->getAPInt().abs() == accessedBytes(Access);
  return IsNext ? Stride::Consecutive : Stride::Strided;
}

bool hasNewAddressInEachIteration(const Instruction &Access, const Loop &L,
                                  ScalarEvolution &SE) {
  const SCEVAddRecExpr *Recurrence = recurrenceOf(addressOf(Access, SE), L);
  if (!Recurrence)
    return false;
  const auto *Step = dyn_cast<SCEVConstant>(Recurrence->getStepRecurrence(SE));
  const std::uint64_t Bytes = accessedBytes(Access);
  return Step && Bytes != 0 && Step->getAPInt().abs().uge(Bytes);
}

} // namespace MLBridge
