//===- LoopObservation.cpp - The features of a loop -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Computes the features from the graph and from LLVM's analyses.
///
//===----------------------------------------------------------------------===//

#include "LoopDistribution/LoopObservation.h"

#include "IR2Vec/ModuleEmbedder.h"
#include "LoopDistribution/AccessPattern.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopAccessAnalysis.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

#include <algorithm>
#include <cmath>

using namespace llvm;

namespace MLBridge {

/// Returns the column that counts \p I.
static LoopObservation::NodeColumn columnOf(const Instruction &I) {
  using Column = LoopObservation::NodeColumn;
  if (isa<LoadInst>(I))
    return Column::Loads;
  if (isa<StoreInst>(I))
    return Column::Stores;
  if (isa<CmpInst, SelectInst>(I))
    return Column::Comparisons;
  if (isa<CastInst>(I))
    return Column::Conversions;
  switch (I.getOpcode()) {
  case Instruction::FDiv:
  case Instruction::FRem:
  case Instruction::SDiv:
  case Instruction::UDiv:
  case Instruction::SRem:
  case Instruction::URem:
    return Column::Divisions;
  default:
    break;
  }
  if (const auto *Call = dyn_cast<IntrinsicInst>(&I);
      Call && Call->getIntrinsicID() == Intrinsic::sqrt)
    return Column::Divisions;
  if (isa<CallBase>(I))
    return Column::Calls;
  return I.getType()->isFPOrFPVectorTy() ? Column::Floating : Column::Integer;
}

static float logOf(double Count) {
  return float(std::log1p(std::max(Count, 0.0)));
}

LoopObservation::LoopObservation(const DependenceGraph &Graph,
                                 const LoopAnalyses &Analyses,
                                 const EmbeddingVocabulary *Vocabulary)
    : NodeRows(Graph.nodes().size() * NodeColumns) {
  for (std::size_t Number = 0; Number < Graph.nodes().size(); ++Number)
    describeNode(Graph, Analyses, Number);
  describeLoop(Graph, Analyses);
  for (const DependenceGraph::Edge &E : Graph.edges())
    EdgeRows.insert(EdgeRows.end(), {std::int32_t(E.From), std::int32_t(E.To),
                                     std::int32_t(E.Kind)});
  for (unsigned Seed : Graph.seeds())
    SeedIndices.push_back(std::int32_t(Seed));
  if (!Vocabulary)
    return;
  Dimension = Vocabulary->dimension();
  Embeddings.resize(Graph.nodes().size() * Dimension);
  for (auto [Number, Node] : enumerate(Graph.nodes())) {
    EntityHistogram Sum;
    for (const Instruction *I : Node.Instructions)
      Sum += EntityHistogram::of(*I);
    Vocabulary->embed(
        Sum, Normalization::None,
        MutableArrayRef(Embeddings).slice(Number * Dimension, Dimension));
  }
}

void LoopObservation::describeNode(const DependenceGraph &Graph,
                                   const LoopAnalyses &Analyses,
                                   std::size_t Number) {
  const DependenceGraph::Node &Node = Graph.nodes()[Number];
  Loop &L = Graph.loop();
  const auto Row =
      MutableArrayRef(NodeRows).slice(Number * NodeColumns, NodeColumns);
  Row[Seed] = Node.IsSeed;
  Row[Shared] = Node.IsShared;
  Row[Recurrence] = Node.Instructions.size() > 1;
  for (Instruction *I : Node.Instructions) {
    Row[Instructions] += 1;
    if (isUsedAfter(*I, L))
      Row[LiveOut] = 1;
    if (isConditional(*I->getParent(), L, Analyses.DT))
      Row[Conditional] = 1;
    Row[Throughput] += float(cyclesOf(*I, Analyses));
    Row[Latency] += float(latencyOf(*I, Analyses));
    if (PHINode *Phi = headerPhi(*I, L)) {
      Row[Recurrence] = 1;
      const PhiKinds Kinds = kindsOf(*Phi, L, Analyses);
      if (Kinds.IsInduction)
        Row[Induction] = 1;
      else if (Kinds.IsReduction)
        Row[Kinds.IsOrdered ? Ordered : Reduction] = 1;
    }
    if (!I->isTerminator() && !isa<PHINode>(I))
      Row[columnOf(*I)] += 1;
    if (!isa<LoadInst, StoreInst>(I))
      continue;
    constexpr NodeColumn Columns[] = {Consecutive, Strided, Invariant,
                                      Irregular};
    Row[Columns[std::size_t(strideOf(*I, L, Analyses.SE))]] += 1;
    Row[Bytes] = std::max(Row[Bytes], float(accessedBytes(*I)) / 8);
  }
  for (const DependenceGraph::MemoryDependence &D : Graph.memoryDependences())
    if (Node.Instructions.size() > 1 && Graph.nodeOf(*D.First) == Number &&
        Graph.nodeOf(*D.Second) == Number)
      Row[ThroughMemory] = 1;
  for (NodeColumn Count :
       {Instructions, Loads, Stores, Floating, Divisions, Integer, Comparisons,
        Conversions, Calls, Consecutive, Strided, Invariant, Irregular,
        Throughput, Latency})
    Row[Count] = logOf(Row[Count]);
}

void LoopObservation::describeLoop(const DependenceGraph &Graph,
                                   const LoopAnalyses &Analyses) {
  Loop &L = Graph.loop();
  const LoopAccessInfo &Accesses = Graph.accesses();
  // Ignore a larger maximum, which only shows the type of the induction
  // variable.
  constexpr unsigned MaxIterations = 1 << 20;
  const unsigned Maximum = Analyses.SE.getSmallConstantMaxTripCount(&L);
  LoopRow[Iterations] = Maximum <= MaxIterations ? logOf(Maximum) : 0;
  LoopRow[KnownIterations] = Analyses.SE.getSmallConstantTripCount(&L) != 0;
  LoopRow[Depth] = float(L.getLoopDepth());
  LoopRow[Blocks] = logOf(L.getNumBlocks());
  double Count = 0;
  float Smallest = 0, Largest = 0;
  for (const DependenceGraph::Node &Node : Graph.nodes())
    for (const Instruction *I : Node.Instructions) {
      ++Count;
      if (!isa<LoadInst, StoreInst>(I))
        continue;
      const float Size = float(accessedBytes(*I));
      Smallest = Smallest == 0 ? Size : std::min(Smallest, Size);
      Largest = std::max(Largest, Size);
    }
  LoopRow[AllInstructions] = logOf(Count);
  LoopRow[Nodes] = logOf(double(Graph.nodes().size()));
  LoopRow[Seeds] = logOf(double(Graph.seeds().size()));
  LoopRow[Vectorizable] = Accesses.canVectorizeMemory();
  LoopRow[Checks] = logOf(Accesses.getNumRuntimePointerChecks());
  LoopRow[Assumptions] =
      logOf(Accesses.getPSE().getPredicate().getComplexity());
  const MemoryDepChecker &Checker = Accesses.getDepChecker();
  LoopRow[SafeWidth] =
      Checker.isSafeForAnyVectorWidth()
          ? logOf(4096)
          : logOf(double(Checker.getMaxSafeVectorWidthInBits()));
  LoopRow[RegisterWidth] = logOf(double(vectorRegisterBits(Analyses)));
  LoopRow[SmallestElement] = Smallest;
  LoopRow[LargestElement] = Largest;
}

void LoopObservation::setFeatures(FeatureSet &Into) const {
  const auto Count = std::int64_t(NodeRows.size() / NodeColumns);
  Into.set("nodes", TensorRef(NodeRows, {Count, std::int64_t(NodeColumns)}));
  Into.set("edges",
           TensorRef(EdgeRows, {std::int64_t(EdgeRows.size() / 3), 3}));
  Into.set("seeds", Span<const std::int32_t>(SeedIndices));
  Into.set("loop", Span<const float>(LoopRow));
  if (Dimension != 0)
    Into.set("embeddings",
             TensorRef(Embeddings, {Count, std::int64_t(Dimension)}));
}

} // namespace MLBridge
