//===- LoopDistributor.cpp - Distributes a loop ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Copies the loop for each planned loop, and deletes from each copy the
/// instructions that the planned loop does not contain.
///
//===----------------------------------------------------------------------===//

#include "LoopDistribution/LoopDistributor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopAccessAnalysis.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/LoopVersioning.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

#include <memory>
#include <vector>

using namespace llvm;

namespace MLBridge {

namespace {

class Distributor {
public:
  Distributor(const DistributionPlan &Plan, const LoopAnalyses &Analyses)
      : Plan(Plan), Analyses(Analyses), L(Plan.graph().loop()) {
    for (const DistributionPlan::PlannedLoop &Each : Plan.loops())
      Kept.push_back(Each.Contents);
    Replacements.resize(Kept.size());
    Copies.resize(Kept.size() - 1);
  }

  DistributedLoops run() {
    formLCSSA(L, Analyses.DT, &Analyses.LI, &Analyses.SE);
    BasicBlock *Preheader = L.getLoopPreheader();
    if (!Preheader->getSinglePredecessor() ||
        &Preheader->front() != Preheader->getTerminator())
      SplitBlock(Preheader, Preheader->getTerminator(), &Analyses.DT,
                 &Analyses.LI);
    addChecks();
    addArrays();
    addReloads();
    copy();
    passResults();
    prune();
    Analyses.SE.forgetLoop(&L);
    return std::move(Result);
  }

private:
  struct Copy {
    // Allocate the map, because ValueToValueMapTy cannot be moved.
    std::unique_ptr<ValueToValueMapTy> Map =
        std::make_unique<ValueToValueMapTy>();
    Loop *Copied = nullptr;
  };

  std::size_t last() const { return Kept.size() - 1; }

  /// Returns the copy of \p V in loop \p Number.
  Value *in(std::size_t Number, Value *V) const {
    if (Number == last())
      return V;
    Value *Copied = Copies[Number].Map->lookup(V);
    return Copied ? Copied : V;
  }

  void addChecks() {
    const LoopAccessInfo &Accesses = Plan.graph().accesses();
    const auto &Checks = Accesses.getRuntimePointerChecking()->getChecks();
    if (Checks.empty() && Accesses.getPSE().getPredicate().isAlwaysTrue())
      return;
    LoopVersioning Versioning(Accesses, Checks, &L, &Analyses.LI, &Analyses.DT,
                              &Analyses.SE);
    Versioning.versionLoop();
    Versioning.annotateLoopWithNoAlias();
    Result.Fallback = Versioning.getNonVersionedLoop();
  }

  /// Adds arrays that pass values between loops. Adds a load and a store of the
  /// array element after each value. The loop that computes the value keeps the
  /// store, and later loops keep the load.
  void addArrays() {
    if (Plan.arrays().empty())
      return;
    Result.ArraySize = Plan.arraySize();
    BasicBlock *Header = L.getHeader(), *Latch = L.getLoopLatch();
    IRBuilder<> Builder(&Header->front());
    PHINode *Iteration = Builder.CreatePHI(Builder.getInt64Ty(), 2, "array.i");
    Builder.SetInsertPoint(Latch->getTerminator());
    Value *Next = Builder.CreateNUWAdd(Iteration, Builder.getInt64(1));
    Iteration->addIncoming(Builder.getInt64(0), L.getLoopPreheader());
    Iteration->addIncoming(Next, Latch);
    for (const auto &[V, Producer] : Plan.arrays()) {
      BasicBlock &Entry = Header->getParent()->getEntryBlock();
      Builder.SetInsertPoint(&*Entry.getFirstInsertionPt());
      AllocaInst *Array = Builder.CreateAlloca(
          ArrayType::get(V->getType(), Plan.arrayLength()), nullptr, "array");
      markArray(*Array);
      Builder.SetInsertPoint(V->getParent(), *V->getInsertionPointAfterDef());
      Value *Element =
          Builder.CreateInBoundsGEP(V->getType(), Array, Iteration);
      LoadInst *Load = Builder.CreateLoad(V->getType(), Element);
      StoreInst *Store = Builder.CreateStore(V, Element);
      for (Value *Needed : {static_cast<Value *>(Iteration), Next, Element}) {
        if (auto *I = dyn_cast<Instruction>(Needed))
          for (auto [Number, Contents] : enumerate(Kept))
            if (Number == Producer || isArrayUser(Number, *V))
              Contents.insert(I);
      }
      Kept[Producer].insert(Store);
      for (auto [Number, Contents] : enumerate(Kept))
        if (isArrayUser(Number, *V)) {
          Contents.insert(Load);
          Replacements[Number].push_back({V, Load});
        }
    }
  }

  bool isArrayUser(std::size_t Number, const Instruction &V) const {
    const auto &Transfers = Plan.loops()[Number].Transfers;
    const auto *It = Transfers.find(const_cast<Instruction *>(&V));
    return It != Transfers.end() && !It->second;
  }

  /// Adds loads of values that an earlier loop stores.
  void addReloads() {
    for (auto [Number, Each] : enumerate(Plan.loops()))
      for (const auto &[V, Store] : Each.Transfers) {
        if (!Store)
          continue;
        IRBuilder<> Builder(V->getParent(), *V->getInsertionPointAfterDef());
        Value *Address = Store->getPointerOperand();
        if (auto *I = dyn_cast<Instruction>(Address);
            I && !Analyses.DT.dominates(I, V)) {
          Instruction *Element = I->clone();
          Builder.Insert(Element);
          Kept[Number].insert(Element);
          Address = Element;
        }
        LoadInst *Load = Builder.CreateAlignedLoad(V->getType(), Address,
                                                   Store->getAlign(), "reload");
        Load->copyMetadata(*Store,
                           {LLVMContext::MD_tbaa, LLVMContext::MD_alias_scope,
                            LLVMContext::MD_noalias});
        Kept[Number].insert(Load);
        Replacements[Number].push_back({V, Load});
      }
  }

  /// Copies the loop for each planned loop except the last, which becomes the
  /// original loop.
  void copy() {
    BasicBlock *Exit = L.getExitBlock(), *Top = L.getLoopPreheader();
    BasicBlock *Before = Top->getSinglePredecessor();
    BasicBlock *OriginalTop = Top;
    for (std::size_t Number = last(); Number-- > 0;) {
      Copy &New = Copies[Number];
      SmallVector<BasicBlock *, 8> Blocks;
      New.Copied = cloneLoopWithPreheader(Top, Before, &L, *New.Map,
                                          ".distributed" + Twine(Number),
                                          &Analyses.LI, &Analyses.DT, Blocks);
      (*New.Map)[Exit] = Top;
      remapInstructionsInBlocks(Blocks, *New.Map);
      Top = New.Copied->getLoopPreheader();
    }
    Before->getTerminator()->replaceUsesOfWith(OriginalTop, Top);
    for (const Copy &Each : Copies)
      Result.Loops.push_back(Each.Copied);
    Result.Loops.push_back(&L);
    for (std::size_t Number = 0; Number < last(); ++Number)
      Analyses.DT.changeImmediateDominator(
          Result.Loops[Number + 1]->getLoopPreheader(),
          Result.Loops[Number]->getExitingBlock());
  }

  /// Makes code after the loop use each value from the loop that computes it.
  void passResults() {
    const DependenceGraph &Graph = Plan.graph();
    for (PHINode &Phi : L.getExitBlock()->phis())
      for (unsigned Index = 0; Index < Phi.getNumIncomingValues(); ++Index) {
        auto *V = dyn_cast<Instruction>(Phi.getIncomingValue(Index));
        if (!V || Phi.getIncomingBlock(Index) != L.getExitingBlock() ||
            !L.contains(V))
          continue;
        const unsigned Node = Graph.nodeOf(*V);
        if (!Graph.nodes()[Node].IsSeed)
          continue;
        const unsigned Number = Plan.loopOfSeed(Node);
        if (Number == last())
          continue;
        BasicBlock *After = Result.Loops[Number]->getExitBlock();
        PHINode *Passed =
            PHINode::Create(V->getType(), 1, V->getName(), After->begin());
        Passed->addIncoming(in(Number, V),
                            Result.Loops[Number]->getExitingBlock());
        Phi.setIncomingValue(Index, Passed);
      }
  }

  /// Deletes from each loop the instructions that do not belong to it.
  void prune() {
    // Look up all copies first, because replacing a value changes the maps.
    SmallVector<std::pair<Instruction *, Instruction *>, 8> Replaced;
    SmallVector<Instruction *, 64> Unused;
    for (std::size_t Number = 0; Number < Kept.size(); ++Number) {
      for (auto [Old, New] : Replacements[Number])
        Replaced.push_back({cast<Instruction>(in(Number, Old)),
                            cast<Instruction>(in(Number, New))});
      for (BasicBlock *Block : L.blocks())
        for (Instruction &I : *Block)
          if (!Kept[Number].contains(&I))
            Unused.push_back(cast<Instruction>(in(Number, &I)));
    }
    for (auto [Old, New] : Replaced)
      Old->replaceAllUsesWith(New);
    for (Instruction *I : reverse(Unused)) {
      salvageDebugInfo(*I);
      if (!I->use_empty())
        I->replaceAllUsesWith(PoisonValue::get(I->getType()));
      I->eraseFromParent();
    }
  }

  const DistributionPlan &Plan;
  const LoopAnalyses &Analyses;
  Loop &L;
  /// The instructions of the original loop that each loop keeps.
  std::vector<SmallPtrSet<Instruction *, 32>> Kept;
  /// For each loop, the values to replace and the loads that replace them.
  std::vector<SmallVector<std::pair<Instruction *, Instruction *>, 4>>
      Replacements;
  std::vector<Copy> Copies;
  DistributedLoops Result;
};

} // namespace

DistributedLoops distribute(const DistributionPlan &Plan,
                            const LoopAnalyses &Analyses) {
  return Distributor(Plan, Analyses).run();
}

} // namespace MLBridge
