//===- DistributionCandidates.cpp - The legal distributions ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Computes the columns from dependences and from LLVM's cost model.
///
//===----------------------------------------------------------------------===//

#include "LoopDistribution/DistributionCandidates.h"

#include "LoopDistribution/AccessPattern.h"
#include "LoopDistribution/VectorCosts.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Instructions.h"

#include <algorithm>
#include <array>
#include <cmath>

using namespace llvm;

namespace MLBridge {

namespace {

/// Computes the columns of `distribution_features` for one loop.
class DistributionDescriber {
public:
  /// The arguments must outlive the describer.
  DistributionDescriber(const DependenceGraph &Graph,
                        const LoopAnalyses &Analyses);

  /// Returns the columns of a plan for the graph's loop.
  std::array<float, DistributionColumns>
  describe(const DistributionPlan &Plan) const;

private:
  struct Cost {
    double Scalar = 0, Vector = 0;
  };
  using Contents = SmallPtrSetImpl<Instruction *>;

  bool canVectorize(const Contents &Loop) const;

  const DependenceGraph &Graph;
  /// All instructions of the loop.
  SmallPtrSet<Instruction *, 32> All;
  /// The phis that prevent vectorization.
  SmallPtrSet<const Instruction *, 8> Preventing;
  DenseMap<const Instruction *, Cost> Costs;
  /// The latency of each node in cycles, or 0 if it is not a recurrence.
  std::vector<double> Latencies;
  unsigned Width = 1;
};

} // namespace

DistributionDescriber::DistributionDescriber(const DependenceGraph &Graph,
                                             const LoopAnalyses &Analyses)
    : Graph(Graph), Latencies(Graph.nodes().size()) {
  Loop &L = Graph.loop();
  std::uint64_t Widest = 8;
  for (const DependenceGraph::Node &Node : Graph.nodes())
    for (Instruction *I : Node.Instructions) {
      All.insert(I);
      if (isa<LoadInst, StoreInst>(I))
        Widest = std::max<std::uint64_t>(Widest, 8 * accessedBytes(*I));
    }
  Width = unsigned(
      std::max<std::uint64_t>(1, vectorRegisterBits(Analyses) / Widest));

  for (auto [Number, Node] : enumerate(Graph.nodes())) {
    Latencies[Number] = recurrenceLatencyOf(Node, Analyses);
    for (Instruction *I : Node.Instructions) {
      Costs[I] = {vectorCyclesOf(*I, 1, Graph, Analyses),
                  vectorCyclesOf(*I, Width, Graph, Analyses)};
      PHINode *Phi = headerPhi(*I, L);
      if (!Phi)
        continue;
      const PhiKinds Kinds = kindsOf(*Phi, L, Analyses);
      if (!Kinds.IsInduction && !Kinds.IsFixedOrder && !Kinds.isFreeReduction())
        Preventing.insert(Phi);
    }
  }
}

bool DistributionDescriber::canVectorize(const Contents &Loop) const {
  if (any_of(Preventing, [&](const Instruction *I) {
        return Loop.contains(const_cast<Instruction *>(I));
      }))
    return false;
  return none_of(Graph.memoryDependences(), [&](const auto &D) {
    return D.PreventsVectors && Loop.contains(D.First) &&
           Loop.contains(D.Second);
  });
}

std::array<float, DistributionColumns>
DistributionDescriber::describe(const DistributionPlan &Plan) const {
  using Column = DistributionColumn;
  std::array<double, DistributionColumns> Row{};
  const auto At = [&](Column C) -> double & { return Row[std::size_t(C)]; };
  double Stores = 0, VectorStores = 0;
  for (const DistributionPlan::PlannedLoop &Each : Plan.loops()) {
    // A trivial plan does not list its contents, which are all instructions.
    const Contents &Loop = Plan.isTrivial() ? All : Each.Contents;
    const bool IsVector = canVectorize(Loop);
    double Scalar = 1, Vector = 1, Slowest = 0;
    for (const Instruction *I : Loop) {
      const Cost &C = Costs.at(I);
      Scalar += C.Scalar;
      Vector += C.Vector;
      At(Column::Loads) += isa<LoadInst>(I);
      Stores += isa<StoreInst>(I);
      VectorStores += IsVector && isa<StoreInst>(I);
      Slowest = std::max(Slowest, Latencies[Graph.nodeOf(*I)]);
    }
    At(Column::Loops) += 1;
    At(Column::Vector) += IsVector;
    At(Column::Instructions) += double(Loop.size());
    for (const auto &[Value, Store] : Each.Transfers)
      At(Store ? Column::Reloads : Column::Arrays) += 1;
    At(Column::Scalar) += std::max(Scalar, Slowest);
    At(Column::Cycles) +=
        IsVector ? std::min(Scalar, Vector / Width) : std::max(Scalar, Slowest);
    At(Column::Latency) = std::max(At(Column::Latency), Slowest);
  }
  At(Column::Repeated) =
      At(Column::Instructions) / std::max(1.0, double(All.size()));
  At(Column::VectorShare) = Stores == 0 ? 0 : VectorStores / Stores;
  std::array<float, DistributionColumns> Result{};
  for (std::size_t I = 0; I < DistributionColumns; ++I) {
    const bool IsRatio =
        Column(I) == Column::VectorShare || Column(I) == Column::Repeated;
    Result[I] = float(IsRatio ? Row[I] : std::log1p(Row[I]));
  }
  return Result;
}

DistributionCandidates::DistributionCandidates(const DependenceGraph &Graph,
                                               const LoopAnalyses &Analyses)
    : Nodes(Graph.nodes().size()) {
  const DistributionDescriber Describer(Graph, Analyses);
  for (const DistributionPlan &Plan : legalPlans(Graph, Analyses)) {
    for (std::int64_t Loop : Plan.partition())
      Partitions.push_back(std::int32_t(Loop));
    const auto Row = Describer.describe(Plan);
    Described.insert(Described.end(), Row.begin(), Row.end());
  }
}

std::optional<std::vector<std::int64_t>>
DistributionCandidates::at(std::int64_t Index) const {
  if (Index < 0 || std::uint64_t(Index) >= size())
    return std::nullopt;
  const auto Begin =
      Partitions.begin() + std::ptrdiff_t(Index) * std::ptrdiff_t(Nodes);
  return std::vector<std::int64_t>(Begin, Begin + std::ptrdiff_t(Nodes));
}

void DistributionCandidates::setFeatures(FeatureSet &Into) const {
  const auto Count = std::int64_t(size());
  Into.set("distributions",
           TensorRef(Partitions, {Count, std::int64_t(Nodes)}));
  Into.set("distribution_features",
           TensorRef(Described, {Count, std::int64_t(DistributionColumns)}));
}

} // namespace MLBridge
