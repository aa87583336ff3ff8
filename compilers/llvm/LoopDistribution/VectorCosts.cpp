//===- VectorCosts.cpp - The costs of vector instructions -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Computes costs with TargetTransformInfo.
///
//===----------------------------------------------------------------------===//

#include "LoopDistribution/VectorCosts.h"

#include "LoopDistribution/AccessPattern.h"

#include "llvm/ADT/APInt.h"
#include "llvm/Analysis/LoopAccessAnalysis.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

#include <algorithm>

using namespace llvm;

namespace MLBridge {

using TTI = TargetTransformInfo;
static constexpr TTI::TargetCostKind Kind = TTI::TCK_RecipThroughput;

/// Returns the estimated cycles of the vectorized load or store \p I. \p Scalar
/// is the cycles of one scalar access.
static double accessCycles(const Instruction &I, FixedVectorType *Vector,
                           double Scalar, const DependenceGraph &Graph,
                           const LoopAnalyses &Analyses) {
  const TTI &Target = Analyses.TTI;
  const Loop &L = Graph.loop();
  const bool IsLoad = isa<LoadInst>(I);
  const unsigned Width = Vector->getNumElements();
  const Align Alignment = getLoadStoreAlignment(&I);
  const unsigned Space = getLoadStoreAddressSpace(&I);
  Type *Element = Vector->getElementType();
  const auto Memory = [&](Intrinsic::ID Id) {
    return cyclesOf(Target.getMemIntrinsicInstrCost(
        MemIntrinsicCostAttributes(Id, Vector, Alignment, Space), Kind));
  };
  const double OneByOne =
      Width * Scalar + cyclesOf(Target.getScalarizationOverhead(
                           Vector, APInt::getAllOnes(Width), /*Insert=*/IsLoad,
                           /*Extract=*/!IsLoad, Kind));
  const bool IsConditional = isConditional(*I.getParent(), L, Analyses.DT);
  // Add one branch for each element of a conditional access.
  const double Separate = OneByOne + (IsConditional ? Width : 0);
  // Assume that an unknown stride is 1, as the vectorizer does. The vectorizer
  // adds a check at run time.
  const bool IsAssumed = Graph.accesses().getSymbolicStrides().contains(
      const_cast<Value *>(getLoadStorePointerOperand(&I)));
  switch (IsAssumed ? Stride::Consecutive : strideOf(I, L, Analyses.SE)) {
  case Stride::Consecutive:
    if (!IsConditional)
      return cyclesOf(Target.getMemoryOpCost(I.getOpcode(), Vector, Alignment,
                                             Space, Kind));
    if (IsLoad ? Target.isLegalMaskedLoad(Element, Alignment, Space)
               : Target.isLegalMaskedStore(Element, Alignment, Space))
      return Memory(IsLoad ? Intrinsic::masked_load : Intrinsic::masked_store);
    return Separate;
  case Stride::Invariant:
    return IsLoad && !IsConditional ? Scalar : Separate;
  case Stride::Strided:
  case Stride::Irregular:
    break;
  }
  const bool HasInstruction =
      IsLoad ? Target.isLegalMaskedGather(Element, Alignment) &&
                   !Target.forceScalarizeMaskedGather(Vector, Alignment)
             : Target.isLegalMaskedScatter(Element, Alignment) &&
                   !Target.forceScalarizeMaskedScatter(Vector, Alignment);
  if (!HasInstruction)
    return Separate;
  const double Gather =
      Memory(IsLoad ? Intrinsic::masked_gather : Intrinsic::masked_scatter);
  return Gather == 0 ? Separate : std::min(Gather, Separate);
}

double vectorCyclesOf(const Instruction &I, unsigned Width,
                      const DependenceGraph &Graph,
                      const LoopAnalyses &Analyses) {
  if (isa<PHINode>(I) || I.isTerminator() || isa<GetElementPtrInst>(I))
    return 0;
  const double Scalar = cyclesOf(I, Analyses);
  if (Width == 1)
    return Scalar;
  const TTI &Target = Analyses.TTI;
  const bool IsAccess = isa<LoadInst, StoreInst>(I);
  Type *Element =
      IsAccess ? getLoadStoreType(const_cast<Instruction *>(&I)) : I.getType();
  const auto VectorOf = [Width](Type *T) -> Type * {
    return T->isVectorTy() || !VectorType::isValidElementType(T)
               ? nullptr
               : FixedVectorType::get(T, Width);
  };
  Type *Vector = VectorOf(Element);
  if (!Vector)
    return Width * Scalar;
  if (IsAccess)
    return accessCycles(I, cast<FixedVectorType>(Vector), Scalar, Graph,
                        Analyses);
  if (isa<BinaryOperator>(I))
    return cyclesOf(Target.getArithmeticInstrCost(I.getOpcode(), Vector, Kind));
  if (isa<CmpInst, SelectInst>(I)) {
    Type *Compared =
        VectorOf(isa<CmpInst>(I) ? I.getOperand(0)->getType() : Element);
    if (!Compared)
      return Width * Scalar;
    auto *Condition =
        FixedVectorType::get(Type::getInt1Ty(I.getContext()), Width);
    const auto Predicate = isa<CmpInst>(I) ? cast<CmpInst>(I).getPredicate()
                                           : CmpInst::BAD_ICMP_PREDICATE;
    return cyclesOf(Target.getCmpSelInstrCost(I.getOpcode(), Compared,
                                              Condition, Predicate, Kind));
  }
  if (isa<CastInst>(I)) {
    Type *Source = VectorOf(I.getOperand(0)->getType());
    return Source
               ? cyclesOf(Target.getCastInstrCost(I.getOpcode(), Vector, Source,
                                                  TTI::getCastContextHint(&I),
                                                  Kind))
               : Width * Scalar;
  }
  if (const auto *Call = dyn_cast<IntrinsicInst>(&I)) {
    SmallVector<Type *, 4> Arguments;
    for (const Use &Argument : Call->args())
      Arguments.push_back(VectorOf(Argument->getType()));
    if (!is_contained(Arguments, nullptr))
      return cyclesOf(Target.getIntrinsicInstrCost(
          IntrinsicCostAttributes(Call->getIntrinsicID(), Vector, Arguments),
          Kind));
  }
  return Width * Scalar;
}

double recurrenceLatencyOf(const DependenceGraph::Node &Node,
                           const LoopAnalyses &Analyses) {
  double Sum = 0;
  if (Node.Instructions.size() > 1 && !Node.IsShared)
    for (const Instruction *I : Node.Instructions)
      Sum += latencyOf(*I, Analyses);
  return Sum;
}

} // namespace MLBridge
