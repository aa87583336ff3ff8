//===- DistributionPlan.h - How a loop is distributed -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// DistributionPlan lists the instructions of each loop of a distribution. A
/// plan can only be created for a legal distribution. Therefore, the
/// distributed loops compute the same results as the original loop, whatever a
/// model replies.
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
  struct PlannedLoop {
    /// The instructions of the original loop that this loop contains.
    llvm::SmallPtrSet<llvm::Instruction *, 32> Contents;
    /// The values that this loop loads instead of computing them. Each value is
    /// mapped to the earlier loop's store of the value, or to null if an array
    /// passes the value.
    llvm::MapVector<llvm::Instruction *, llvm::StoreInst *> Transfers;
  };

  /// The maximum number of assumptions that are checked at run time.
  static constexpr unsigned MaxPredicates = 8;

  /// Plans the distribution of a loop. \p Partition has a number for each node
  /// of the graph, but only the numbers of seeds matter. Seeds with the same
  /// number stay in one loop. The loops run in the order of the numbers.
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
  /// Maps each value that needs an array to the number of the loop that
  /// computes the value.
  const llvm::MapVector<llvm::Instruction *, unsigned> &arrays() const {
    return Arrays;
  }
  /// The number of iterations for which the arrays have room.
  unsigned arrayLength() const { return ArrayLength; }
  /// The total size of the arrays in bytes. It is within the budget of
  /// LoopAnalyses.
  std::uint64_t arraySize() const { return ArraySize; }
  /// Returns a partition from which make() makes this plan. Nodes that are not
  /// seeds have the number 0.
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
  bool isInEarlierLoop(unsigned Number, llvm::Instruction &Value) const;
  Error check() const;
  /// Returns the number of the loop that contains the store \p I.
  unsigned loopOfStore(const llvm::Instruction &I) const {
    return LoopOfNode[Graph->nodeOf(I)];
  }

  const DependenceGraph *Graph;
  const LoopAnalyses *Analyses;
  /// For each node that is a seed, the number of its loop.
  std::vector<unsigned> LoopOfNode;
  std::vector<PlannedLoop> Loops;
  llvm::MapVector<llvm::Instruction *, unsigned> Arrays;
  std::uint64_t ArraySize = 0;
  unsigned ArrayLength = 0;
};

/// Returns values that are available at the position of \p Value and determine
/// the address of \p Store. The result is the address itself if it is
/// available. Otherwise, the result is the operands of its getelementptr, or
/// std::nullopt if one of them is not available.
std::optional<llvm::SmallVector<llvm::Value *, 4>>
addressAt(const llvm::Instruction &Value, const llvm::StoreInst &Store,
          const llvm::DominatorTree &DT);

/// Returns the legal plans for a loop. The first plan is trivial. If there are
/// more than \p MaxFree seeds, returns only plans that keep the order of the
/// seeds. If there are more than \p MaxSeeds seeds, returns only the trivial
/// plan.
std::vector<DistributionPlan> legalPlans(const DependenceGraph &Graph,
                                         const LoopAnalyses &Analyses,
                                         unsigned MaxFree = 4,
                                         unsigned MaxSeeds = 8);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_DISTRIBUTIONPLAN_H
