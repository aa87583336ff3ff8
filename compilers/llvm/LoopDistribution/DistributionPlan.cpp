//===- DistributionPlan.cpp - How a loop is distributed -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Selects the instructions of each loop. A loop contains its seeds, all
/// branches, and the values that these use. A loop loads a value from memory if
/// an earlier loop stores the value anyway. It also loads the value if
/// computing it again would be slow, or wrong because operands in memory have
/// changed.
///
//===----------------------------------------------------------------------===//

#include "LoopDistribution/DistributionPlan.h"

#include "LoopDistribution/AccessPattern.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopAccessAnalysis.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"

#include <map>

using namespace llvm;

namespace MLBridge {

static Error violated(const Instruction &First, const Instruction &Second) {
  return Error(ErrorCode::Unsupported, "the dependence of " + describe(Second) +
                                           " on " + describe(First) +
                                           " would be violated");
}

Expected<DistributionPlan>
DistributionPlan::make(const DependenceGraph &Graph,
                       ArrayRef<std::int64_t> Partition,
                       const LoopAnalyses &Analyses) {
  if (Partition.size() != Graph.nodes().size())
    return Error(ErrorCode::InvalidArgument,
                 "partition has " + std::to_string(Partition.size()) +
                     " numbers, expected " +
                     std::to_string(Graph.nodes().size()) +
                     ", one for each node");
  DistributionPlan Plan(Graph, Analyses);
  std::map<std::int64_t, unsigned> Numbers;
  for (unsigned Seed : Graph.seeds())
    Numbers.try_emplace(Partition[Seed]);
  unsigned Count = 0;
  for (auto &[Given, Number] : Numbers)
    Number = Count++;
  Plan.LoopOfNode.resize(Graph.nodes().size());
  for (unsigned Seed : Graph.seeds())
    Plan.LoopOfNode[Seed] = Numbers[Partition[Seed]];
  Plan.Loops.resize(std::max(Count, 1U));
  if (Plan.isTrivial())
    return Plan;
  if (Graph.accesses().getPSE().getPredicate().getComplexity() > MaxPredicates)
    return Error(ErrorCode::Unsupported, "too many checks at run time");
  for (unsigned Number = 0; Number < Count; ++Number)
    if (Error E = Plan.fill(Number))
      return E;
  if (Error E = Plan.check())
    return E;
  return Plan;
}

Error DistributionPlan::fill(unsigned Number) {
  SmallVector<Instruction *, 32> Pending;
  for (unsigned Seed : Graph->seeds())
    if (LoopOfNode[Seed] == Number)
      append_range(Pending, Graph->nodes()[Seed].Instructions);
  for (BasicBlock *Block : Graph->loop().blocks())
    Pending.push_back(Block->getTerminator());
  SmallPtrSetImpl<Instruction *> &Contents = Loops[Number].Contents;
  Contents.insert(Pending.begin(), Pending.end());
  while (!Pending.empty()) {
    Instruction *I = Pending.pop_back_val();
    for (Use &Operand : I->operands())
      if (auto *Value = dyn_cast<Instruction>(Operand);
          Value && Graph->loop().contains(Value) && !Contents.contains(Value) &&
          !Loops[Number].Transfers.contains(Value))
        if (Error E = addOperand(Number, *Value, Pending))
          return E;
  }
  return Error::success();
}

Error DistributionPlan::addOperand(unsigned Number, Instruction &Value,
                                   SmallVectorImpl<Instruction *> &Pending) {
  PlannedLoop &Loop = Loops[Number];
  if (StoreInst *Store = reloadable(Number, Value)) {
    Loop.Transfers[&Value] = Store;
    const auto Address = addressAt(Value, *Store, Analyses->DT);
    for (class Value *Needed : *Address)
      if (auto *I = dyn_cast<Instruction>(Needed);
          I && Graph->loop().contains(I) && Loop.Contents.insert(I).second)
        Pending.push_back(I);
    return Error::success();
  }
  if (isRecurrence(Value) && tryArray(Number, Value)) {
    Loop.Transfers[&Value] = nullptr;
    return Error::success();
  }
  if (isa<FreezeInst>(Value) && isInEarlierLoop(Number, Value)) {
    // Do not copy a freeze, because each copy can choose another value.
    if (!tryArray(Number, Value))
      return Error(ErrorCode::Unsupported,
                   "an undefined value would be chosen twice by " +
                       describe(Value));
    Loop.Transfers[&Value] = nullptr;
    return Error::success();
  }
  if (isa<LoadInst>(Value))
    if (const auto *Obstacle = obstacle(Number, Value)) {
      if (tryArray(Number, Value)) {
        Loop.Transfers[&Value] = nullptr;
        return Error::success();
      }
      return violated(*Obstacle->First, *Obstacle->Second);
    }
  Loop.Contents.insert(&Value);
  Pending.push_back(&Value);
  return Error::success();
}

std::optional<SmallVector<Value *, 4>> addressAt(const Instruction &Value,
                                                 const StoreInst &Store,
                                                 const DominatorTree &DT) {
  const auto IsKnown = [&](const class Value *V) {
    const auto *I = dyn_cast<Instruction>(V);
    return !I || DT.dominates(I, &Value);
  };
  class Value *Address = const_cast<class Value *>(Store.getPointerOperand());
  if (IsKnown(Address))
    return SmallVector<class Value *, 4>{Address};
  auto *Element = dyn_cast<GetElementPtrInst>(Address);
  if (Element && all_of(Element->operands(), IsKnown))
    return SmallVector<class Value *, 4>(Element->operands());
  return std::nullopt;
}

/// True if the value is computed from its own value in an earlier iteration,
/// and so is slow to compute again. Values that branches need do not count,
/// because every loop computes them anyway.
bool DistributionPlan::isRecurrence(const Instruction &Value) const {
  const DependenceGraph::Node &Node = Graph->nodes()[Graph->nodeOf(Value)];
  return !Node.IsShared && Node.Instructions.size() > 1;
}

bool DistributionPlan::isInEarlierLoop(unsigned Number,
                                       Instruction &Value) const {
  return any_of(
      ArrayRef(Loops).take_front(Number),
      [&](const PlannedLoop &Loop) { return Loop.Contents.contains(&Value); });
}

/// Returns an earlier loop's store of \p Value if loop \p Number can load the
/// value from the same location. Otherwise returns null.
StoreInst *DistributionPlan::reloadable(unsigned Number,
                                        Instruction &Value) const {
  if (isa<PHINode>(Value) || isa<LoadInst>(Value))
    return nullptr;
  for (User *U : Value.users()) {
    auto *Store = dyn_cast<StoreInst>(U);
    if (!Store || Store->getValueOperand() != &Value ||
        Store->getParent() != Value.getParent() ||
        !Graph->loop().contains(Store) || loopOfStore(*Store) >= Number ||
        !hasNewAddressInEachIteration(*Store, Graph->loop(), Analyses->SE))
      continue;
    if (!addressAt(Value, *Store, Analyses->DT))
      continue;
    const bool IsOverwritten =
        any_of(Graph->memoryDependences(), [&](const auto &D) {
          return (D.First == Store && isa<StoreInst>(D.Second)) ||
                 (D.Second == Store && isa<StoreInst>(D.First));
        });
    if (!IsOverwritten)
      return Store;
  }
  return nullptr;
}

/// Returns a dependence that would be violated if loop \p Number executed
/// \p Load, or null.
const DependenceGraph::MemoryDependence *
DistributionPlan::obstacle(unsigned Number, const Instruction &Load) const {
  for (const DependenceGraph::MemoryDependence &D : Graph->memoryDependences())
    if ((D.First == &Load && loopOfStore(*D.Second) < Number) ||
        (D.Second == &Load && loopOfStore(*D.First) > Number))
      return &D;
  return nullptr;
}

/// Plans an array that passes \p Value from an earlier loop to loop \p Number.
/// Returns false if no earlier loop computes the value, or if the array may be
/// too large.
bool DistributionPlan::tryArray(unsigned Number, Instruction &Value) {
  if (Arrays.contains(&Value))
    return true;
  const auto Earlier = ArrayRef(Loops).take_front(Number);
  const auto *Producer = find_if(Earlier, [&](const PlannedLoop &Loop) {
    return Loop.Contents.contains(&Value);
  });
  if (Producer == Earlier.end())
    return false;
  const unsigned Iterations =
      Analyses->SE.getSmallConstantMaxTripCount(&Graph->loop());
  const TypeSize Size = Value.getDataLayout().getTypeAllocSize(Value.getType());
  if (Iterations == 0 || Size.isScalable() ||
      ArraySize + Iterations * Size.getFixedValue() > Analyses->ArrayBudget)
    return false;
  ArraySize += Iterations * Size.getFixedValue();
  ArrayLength = Iterations;
  Arrays[&Value] = unsigned(Producer - Earlier.begin());
  return true;
}

/// Checks all dependences through memory for the final contents of the loops.
Error DistributionPlan::check() const {
  for (const DependenceGraph::MemoryDependence &D : Graph->memoryDependences())
    for (std::size_t Later = 1; Later < Loops.size(); ++Later)
      for (std::size_t Earlier = 0; Earlier < Later; ++Earlier)
        if (Loops[Later].Contents.contains(D.First) &&
            Loops[Earlier].Contents.contains(D.Second))
          return violated(*D.First, *D.Second);
  return Error::success();
}

std::vector<DistributionPlan> legalPlans(const DependenceGraph &Graph,
                                         const LoopAnalyses &Analyses,
                                         unsigned MaxFree, unsigned MaxSeeds) {
  std::vector<DistributionPlan> Result;
  const ArrayRef<unsigned> Seeds = Graph.seeds();
  const auto Count = unsigned(Seeds.size());
  std::vector<std::int64_t> Partition(Graph.nodes().size());
  const auto Try = [&] {
    if (auto Plan = DistributionPlan::make(Graph, Partition, Analyses))
      Result.push_back(std::move(*Plan));
  };
  Try();
  if (Count < 2 || Count > MaxSeeds)
    return Result;
  // Try all assignments of loop numbers to seeds. Skip those in which a number
  // below the highest used number is unused, because they repeat others.
  const auto TryAll = [&](auto &&Self, unsigned Position,
                          std::int64_t Used) -> void {
    if (Position == Count) {
      for (std::int64_t Number = 0; Number < Used; ++Number)
        if (none_of(Seeds,
                    [&](unsigned Seed) { return Partition[Seed] == Number; }))
          return;
      if (Used > 1)
        Try();
      return;
    }
    const bool IsFree = Count <= MaxFree;
    const std::int64_t Last = Position ? Partition[Seeds[Position - 1]] : 0;
    const std::int64_t Begin = IsFree ? 0 : Last;
    const std::int64_t End = IsFree ? Count : Position ? Last + 2 : 1;
    for (std::int64_t Number = Begin; Number < End; ++Number) {
      Partition[Seeds[Position]] = Number;
      Self(Self, Position + 1, std::max(Used, Number + 1));
    }
  };
  TryAll(TryAll, 0, 0);
  return Result;
}

} // namespace MLBridge
