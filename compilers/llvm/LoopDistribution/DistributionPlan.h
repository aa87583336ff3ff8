//===- DistributionPlan.h - How a loop is distributed -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// DistributionPlan says which instructions each loop of a distribution
/// contains. A plan exists only for legal distributions: whatever a model
/// replies, the distributed loops compute what the original loop does.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_DISTRIBUTIONPLAN_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_DISTRIBUTIONPLAN_H

#include "LoopDistribution/DependenceGraph.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace llvm {
class StoreInst;
class Value;
} // namespace llvm

namespace MLBridge {

class DistributionPlan {
public:
  /// A loop of the distribution.
  struct PlannedLoop {
    /// The instructions of the original loop that the loop contains.
    llvm::SmallPtrSet<llvm::Instruction *, 32> Contents;
    /// The values that the loop needs, but does not compute. Each has the store
    /// of an earlier loop whose location contains the value, or null if the
    /// value is in an array.
    llvm::MapVector<llvm::Instruction *, llvm::StoreInst *> Transfers;
  };

  /// The maximum size of the arrays that pass values from a loop to a later
  /// one, in bytes. They are on the stack.
  static constexpr std::uint64_t MaxArraySize = std::uint64_t(1) << 15;
  /// The maximum number of assumptions that are checked at run time.
  static constexpr unsigned MaxPredicates = 8;

  /// Plans the distribution of a loop. \p Partition has a number for each node
  /// of the graph, but only the numbers of seeds matter. Seeds with the same
  /// number stay in one loop, and the loops follow each other by their numbers.
  /// Returns InvalidArgument if the length of \p Partition is wrong, and
  /// Unsupported with the violated dependence if the distribution is illegal.
  static Expected<DistributionPlan> make(const DependenceGraph &Graph,
                                         llvm::ArrayRef<std::int64_t> Partition,
                                         const LoopAnalyses &Analyses);

  const DependenceGraph &graph() const { return *Graph; }
  /// The loops, in the order of their execution.
  llvm::ArrayRef<PlannedLoop> loops() const { return Loops; }
  /// True if the plan leaves the loop as it is.
  bool isTrivial() const { return Loops.size() < 2; }
  /// The values that need an array, and the loops that compute them.
  const llvm::MapVector<llvm::Instruction *, unsigned> &arrays() const {
    return Arrays;
  }
  /// The number of iterations for which the arrays have room.
  unsigned arrayLength() const { return ArrayLength; }
  /// Returns an argument of make() that makes this plan. The numbers of nodes
  /// that are no seeds are 0.
  std::vector<std::int64_t> partition() const {
    return {LoopOfNode.begin(), LoopOfNode.end()};
  }
  /// Returns the number of the loop that computes the seed \p Node.
  unsigned loopOfSeed(unsigned Node) const { return LoopOfNode[Node]; }

private:
  DistributionPlan(const DependenceGraph &Graph, const LoopAnalyses &Analyses)
      : Graph(&Graph), Analyses(&Analyses) {}
  Error fill(unsigned Number);
  Error addOperand(unsigned Number, llvm::Instruction &Value,
                   llvm::SmallVectorImpl<llvm::Instruction *> &Pending);
  llvm::StoreInst *reloadable(unsigned Number, llvm::Instruction &Value) const;
  const DependenceGraph::MemoryDependence *
  obstacle(unsigned Number, const llvm::Instruction &Load) const;
  bool tryArray(unsigned Number, llvm::Instruction &Value);
  bool isRecurrence(const llvm::Instruction &Value) const;
  Error check() const;
  /// Returns the number of the loop that contains the store \p I.
  unsigned loopOfStore(const llvm::Instruction &I) const {
    return LoopOfNode[Graph->nodeOf(I)];
  }

  const DependenceGraph *Graph;
  const LoopAnalyses *Analyses;
  /// The number of the loop of each node that is a seed.
  std::vector<unsigned> LoopOfNode;
  std::vector<PlannedLoop> Loops;
  llvm::MapVector<llvm::Instruction *, unsigned> Arrays;
  std::uint64_t ArraySize = 0;
  unsigned ArrayLength = 0;
};

/// Returns the values that \p Store needs for its address at the position of \p
/// Value, or std::nullopt if the address is not known there. If the address
/// itself is not computed earlier, the result has the operands of a
/// getelementptr.
std::optional<llvm::SmallVector<llvm::Value *, 4>>
addressAt(const llvm::Instruction &Value, const llvm::StoreInst &Store,
          const llvm::DominatorTree &DT);

/// Returns all legal plans for a loop. The first one is trivial. With more than
/// \p MaxFree seeds, each loop contains seeds that follow each other, and with
/// more than \p MaxSeeds, only the trivial plan is returned.
std::vector<DistributionPlan> legalPlans(const DependenceGraph &Graph,
                                         const LoopAnalyses &Analyses,
                                         unsigned MaxFree = 4,
                                         unsigned MaxSeeds = 8);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_DISTRIBUTIONPLAN_H
