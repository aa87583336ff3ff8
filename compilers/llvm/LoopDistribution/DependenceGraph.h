//===- DependenceGraph.h - The dependences in a loop ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// DependenceGraph is the dependence graph of an innermost loop. Its nodes are
/// the strongly connected components of the loop's instructions, as in section
/// 4.2 of the bridge's paper. The instructions of a component depend on each
/// other across iterations, so they must stay in one loop.
///
/// Dependences through memory come from LLVM's LoopAccessAnalysis, which the
/// vectorizer uses, too. If two pointers may alias but a check at run time can
/// exclude this, the graph has no edge. A transformation must insert these
/// checks.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_DEPENDENCEGRAPH_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_DEPENDENCEGRAPH_H

#include "LoopDistribution/LoopAnalyses.h"

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class Instruction;
class Loop;
class LoopAccessInfo;
class LoopAccessInfoManager;
} // namespace llvm

namespace MLBridge {

enum class DependenceKind : std::uint8_t {
  Register, ///< An instruction uses another instruction's value.
  Memory,   ///< Two instructions may access the same location.
  Control,  ///< A branch decides whether an instruction is executed.
};

class DependenceGraph {
public:
  struct Node {
    /// The instructions of the component, in program order.
    llvm::SmallVector<llvm::Instruction *, 4> Instructions;
    /// True if the node stores to memory, or if its value is used after the
    /// loop and IsShared is false. A distribution puts each seed into exactly
    /// one loop.
    bool IsSeed = false;
    /// True if a branch of the loop depends on the node. After a distribution,
    /// each loop needs the node's value.
    bool IsShared = false;
  };
  struct Edge {
    /// Indices of nodes. `To` depends on `From`.
    unsigned From, To;
    DependenceKind Kind;
    bool operator==(const Edge &) const = default;
  };
  /// A dependence through memory: First must be executed before Second.
  struct MemoryDependence {
    llvm::Instruction *First, *Second;
    /// True if the dependence prevents vectorization.
    bool PreventsVectors;
  };

  /// Returns the graph of \p L, or Unsupported with the reason why the loop
  /// cannot be distributed. The function does not change the loop. The graph is
  /// valid until the loop changes.
  static Expected<DependenceGraph> build(llvm::Loop &L,
                                         const LoopAnalyses &Analyses);

  llvm::Loop &loop() const { return *L; }
  const llvm::LoopAccessInfo &accesses() const { return *Accesses; }
  /// The owner of accesses(). The graph has its own manager, because LLVM's
  /// shared manager keeps outdated results of loops that have changed.
  llvm::LoopAccessInfoManager &accessManager() const { return *Manager; }
  /// The nodes, ordered by their first instructions.
  llvm::ArrayRef<Node> nodes() const { return Nodes; }
  llvm::ArrayRef<Edge> edges() const { return Edges; }
  /// The indices of the seeds, in ascending order.
  llvm::ArrayRef<unsigned> seeds() const { return Seeds; }
  llvm::ArrayRef<MemoryDependence> memoryDependences() const {
    return Dependences;
  }
  /// Returns the index of the node that contains the loop's instruction \p I.
  unsigned nodeOf(const llvm::Instruction &I) const { return Index.at(&I); }

private:
  DependenceGraph(llvm::Loop &L,
                  std::shared_ptr<llvm::LoopAccessInfoManager> Owned);
  /// Returns the reason why the loop is not supported, or an empty string.
  static std::string unsupported(const llvm::Loop &L,
                                 const LoopAnalyses &Analyses);
  void addMemoryDependences(llvm::ArrayRef<llvm::Instruction *> Instructions,
                            llvm::ScalarEvolution &SE);
  void addComponents(llvm::ArrayRef<llvm::Instruction *> Instructions);
  void addEdges(const llvm::DominatorTree &DT);
  void findSeeds();

  llvm::Loop *L;
  std::shared_ptr<llvm::LoopAccessInfoManager> Manager;
  const llvm::LoopAccessInfo *Accesses;
  std::vector<Node> Nodes;
  std::vector<Edge> Edges;
  llvm::SmallVector<unsigned, 8> Seeds;
  std::vector<MemoryDependence> Dependences;
  llvm::DenseMap<const llvm::Instruction *, unsigned> Index;
};

/// Returns "store (file.c:3:9)", or the instruction as text if it has no
/// location.
std::string describe(const llvm::Instruction &I);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_DEPENDENCEGRAPH_H
