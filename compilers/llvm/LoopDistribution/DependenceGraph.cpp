//===- DependenceGraph.cpp - The dependences in a loop --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Builds the graph from the uses of values, LoopAccessAnalysis and branches.
///
//===----------------------------------------------------------------------===//

#include "LoopDistribution/DependenceGraph.h"

#include "LoopDistribution/AccessPattern.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopAccessAnalysis.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/LoopIterator.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace llvm;

namespace {

/// An instruction and the instructions that depend on it, for scc_iterator.
struct Vertex {
  Instruction *I = nullptr;
  SmallVector<Vertex *, 4> Successors;
};

} // namespace

template <> struct llvm::GraphTraits<Vertex *> {
  using NodeRef = Vertex *;
  using ChildIteratorType = SmallVectorImpl<Vertex *>::iterator;
  static NodeRef getEntryNode(NodeRef V) { return V; }
  static ChildIteratorType child_begin(NodeRef V) {
    return V->Successors.begin();
  }
  static ChildIteratorType child_end(NodeRef V) { return V->Successors.end(); }
};

namespace MLBridge {

std::string describe(const Instruction &I) {
  std::string Text;
  raw_string_ostream OS(Text);
  if (const DILocation *Location = I.getDebugLoc())
    OS << I.getOpcodeName() << " (" << Location->getFilename() << ':'
       << Location->getLine() << ':' << Location->getColumn() << ')';
  else
    I.print(OS);
  return StringRef(Text).trim().str();
}

/// True if \p I does not affect the loop's results. A distribution may delete
/// such an instruction.
static bool isOnlyHint(const Instruction &I) {
  const auto *Call = dyn_cast<IntrinsicInst>(&I);
  return Call && (Call->getIntrinsicID() == Intrinsic::assume ||
                  Call->isDebugOrPseudoInst());
}

std::string DependenceGraph::unsupported(const Loop &L,
                                         const LoopAnalyses &Analyses) {
  if (!L.isInnermost())
    return "the loop contains another loop";
  if (!L.isLoopSimplifyForm())
    return "the loop is not in simplified form";
  if (!L.getExitBlock() || L.getExitingBlock() != L.getLoopLatch())
    return "the loop has several exits, or one before its end";
  if (L.getHeader()->getParent()->hasFnAttribute(Attribute::StrictFP))
    return "the function observes floating-point exceptions";
  if (L.isAnnotatedParallel())
    return "the loop is annotated as parallel";
  // Limit the size, because a graph network needs about 60 KB for each node.
  constexpr std::size_t MaxInstructions = 4096;
  std::size_t Instructions = 0;
  for (const BasicBlock *Block : L.blocks())
    for (const Instruction &I : *Block) {
      if (isOnlyHint(I))
        continue;
      if (++Instructions > MaxInstructions)
        return "the loop has more than " + std::to_string(MaxInstructions) +
               " instructions";
      const auto *Load = dyn_cast<LoadInst>(&I);
      const auto *Store = dyn_cast<StoreInst>(&I);
      const bool IsSimple =
          Load    ? Load->isSimple()
          : Store ? Store->isSimple()
                  : !I.mayReadOrWriteMemory() && !I.mayHaveSideEffects();
      // A distribution copies the loop, so it must be legal to copy each call.
      const auto *Call = dyn_cast<CallBase>(&I);
      const bool CanCopy = !Call || !Call->cannotDuplicate();
      if (!IsSimple || !CanCopy || I.isEHPad() || I.getType()->isTokenTy())
        return "unsupported instruction: " + describe(I);
      if (I.isTerminator() && !isa<BranchInst, SwitchInst>(I))
        return "unsupported branch: " + describe(I);
    }
  if (isa<SCEVCouldNotCompute>(Analyses.SE.getBackedgeTakenCount(&L)))
    return "the number of iterations is unknown";
  return "";
}

DependenceGraph::DependenceGraph(Loop &L,
                                 std::shared_ptr<LoopAccessInfoManager> Owned)
    : L(&L), Manager(std::move(Owned)), Accesses(&Manager->getInfo(L)) {}

Expected<DependenceGraph> DependenceGraph::build(Loop &L,
                                                 const LoopAnalyses &Analyses) {
  if (std::string Why = unsupported(L, Analyses); !Why.empty())
    return Error(ErrorCode::Unsupported, Why);
  auto Manager = std::make_shared<LoopAccessInfoManager>(
      Analyses.SE, Analyses.AA, Analyses.DT, Analyses.LI, &Analyses.TTI,
      &Analyses.TLI, &Analyses.AC);
  const LoopAccessInfo &Accesses = Manager->getInfo(L);
  const auto *Found = Accesses.getDepChecker().getDependences();
  if (Accesses.hasConvergentOp() || !Found ||
      (!Accesses.canVectorizeMemory() && Found->empty())) {
    std::string Why = "the accesses to memory are not understood";
    if (const OptimizationRemarkAnalysis *Report = Accesses.getReport())
      Why += ": " + Report->getMsg();
    return Error(ErrorCode::Unsupported, Why);
  }

  DependenceGraph Graph(L, std::move(Manager));
  SmallVector<Instruction *, 32> Instructions;
  LoopBlocksRPO Order(&L);
  Order.perform(&Analyses.LI);
  for (BasicBlock *Block : Order)
    for (Instruction &I : *Block)
      if (!isOnlyHint(I))
        Instructions.push_back(&I);
  Graph.addMemoryDependences(Instructions, Analyses.SE);
  Graph.addComponents(Instructions);
  Graph.addEdges(Analyses.DT);
  Graph.findSeeds();
  return Graph;
}

void DependenceGraph::addMemoryDependences(ArrayRef<Instruction *> Instructions,
                                           ScalarEvolution &SE) {
  const MemoryDepChecker &Checker = Accesses->getDepChecker();
  DenseSet<std::pair<Instruction *, Instruction *>> Known;
  const auto Add = [&](Instruction *First, Instruction *Second,
                       bool PreventsVectors) {
    if (First != Second && Known.insert({First, Second}).second)
      Dependences.push_back({First, Second, PreventsVectors});
  };
  for (const MemoryDepChecker::Dependence &Found : *Checker.getDependences()) {
    // The source comes first in program order, even in a backward dependence.
    Instruction *Source = Found.getSource(Checker);
    Instruction *Destination = Found.getDestination(Checker);
    const bool PreventsVectors =
        MemoryDepChecker::Dependence::isSafeForVectorization(Found.Type) !=
        MemoryDepChecker::VectorizationSafetyStatus::Safe;
    if (!Found.isBackward())
      Add(Source, Destination, PreventsVectors);
    if (Found.isPossiblyBackward())
      Add(Destination, Source, PreventsVectors);
  }
  // Add dependences between accesses through the same pointer in the same
  // iteration. LoopAccessAnalysis omits them, because vectorization preserves
  // them.
  SmallVector<Instruction *, 16> Memory;
  copy_if(Instructions, std::back_inserter(Memory),
          [](const Instruction *I) { return isa<LoadInst, StoreInst>(I); });
  for (auto *First = Memory.begin(); First != Memory.end(); ++First)
    for (Instruction *Second : make_range(std::next(First), Memory.end())) {
      if (getLoadStorePointerOperand(*First) !=
              getLoadStorePointerOperand(Second) ||
          (isa<LoadInst>(*First) && isa<LoadInst>(Second)))
        continue;
      Add(*First, Second, /*PreventsVectors=*/false);
      if (!hasNewAddressInEachIteration(**First, *L, SE) ||
          !hasNewAddressInEachIteration(*Second, *L, SE))
        Add(Second, *First, /*PreventsVectors=*/true);
    }
}

void DependenceGraph::addComponents(ArrayRef<Instruction *> Instructions) {
  // Make all vertices successors of a root, so that the iterator visits all.
  std::vector<Vertex> Vertices(Instructions.size());
  DenseMap<const Instruction *, Vertex *> Of;
  Vertex Root;
  for (auto [I, V] : zip_equal(Instructions, Vertices)) {
    V.I = I;
    Of[I] = &V;
    Root.Successors.push_back(&V);
  }
  for (Vertex &V : Vertices)
    for (const User *U : V.I->users())
      if (Vertex *Successor = Of.lookup(cast<Instruction>(U)))
        V.Successors.push_back(Successor);
  for (const MemoryDependence &D : Dependences)
    Of[D.First]->Successors.push_back(Of[D.Second]);

  DenseMap<const Instruction *, unsigned> Component;
  unsigned Count = 0;
  for (scc_iterator<Vertex *> It = scc_begin(&Root); !It.isAtEnd(); ++It) {
    for (const Vertex *V : *It)
      Component[V->I] = Count;
    ++Count;
  }
  // Number the nodes in the order of their first instructions.
  DenseMap<unsigned, unsigned> Number;
  for (Instruction *I : Instructions) {
    const auto [It, IsNew] =
        Number.try_emplace(Component[I], unsigned(Nodes.size()));
    if (IsNew)
      Nodes.emplace_back();
    Nodes[It->second].Instructions.push_back(I);
    Index[I] = It->second;
  }
}

void DependenceGraph::addEdges(const DominatorTree &DT) {
  const auto Add = [&](const Instruction *From, const Instruction *To,
                       DependenceKind Kind) {
    const Edge New{Index.at(From), Index.at(To), Kind};
    if (New.From != New.To)
      Edges.push_back(New);
  };
  for (const Node &Each : Nodes)
    for (const Instruction *I : Each.Instructions) {
      for (const User *U : I->users())
        if (const auto *To = cast<Instruction>(U); Index.contains(To))
          Add(I, To, DependenceKind::Register);
      if (!I->isTerminator() || I->getNumSuccessors() < 2 ||
          I->getParent() == L->getLoopLatch())
        continue;
      for (BasicBlock *Block : L->blocks())
        if (Block != I->getParent() && DT.dominates(I->getParent(), Block) &&
            isConditional(*Block, *L, DT))
          for (const Instruction &To : *Block)
            if (Index.contains(&To))
              Add(I, &To, DependenceKind::Control);
    }
  for (const MemoryDependence &D : Dependences)
    Add(D.First, D.Second, DependenceKind::Memory);
  const auto Key = [](const Edge &E) {
    return std::tuple(E.From, E.To, E.Kind);
  };
  sort(Edges, [&](const Edge &A, const Edge &B) { return Key(A) < Key(B); });
  Edges.erase(llvm::unique(Edges), Edges.end());
}

void DependenceGraph::findSeeds() {
  SmallVector<const Instruction *, 16> Needed;
  for (const BasicBlock *Block : L->blocks())
    Needed.push_back(Block->getTerminator());
  DenseSet<const Instruction *> Visited(Needed.begin(), Needed.end());
  while (!Needed.empty()) {
    const Instruction *I = Needed.pop_back_val();
    Nodes[Index.at(I)].IsShared = true;
    for (const Use &Operand : I->operands())
      if (const auto *Value = dyn_cast<Instruction>(Operand);
          Value && Index.contains(Value) && Visited.insert(Value).second)
        Needed.push_back(Value);
  }
  for (auto [Number, Each] : enumerate(Nodes)) {
    const auto IsStore = [](const Instruction *I) { return isa<StoreInst>(I); };
    const auto IsResult = [&](const Instruction *I) {
      return isUsedAfter(*I, *L);
    };
    Each.IsSeed = any_of(Each.Instructions, IsStore) ||
                  (!Each.IsShared && any_of(Each.Instructions, IsResult));
    if (Each.IsSeed)
      Seeds.push_back(unsigned(Number));
  }
}

} // namespace MLBridge
