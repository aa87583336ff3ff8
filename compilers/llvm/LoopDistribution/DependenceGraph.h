//===- DependenceGraph.h - What depends on what in a loop -------*- C++ -*-===//
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
/// vectorizer uses, too. Where two pointers may alias, the graph has no edge if
/// a check at run time can exclude it. A transformation must insert the checks.
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
  Register, ///< An instruction uses the value of another one.
  Memory,   ///< Two instructions may access the same location.
  Control,  ///< A branch decides whether an instruction is executed.
};

class DependenceGraph {
public:
  struct Node {
    /// The instructions of the component, in program order.
    llvm::SmallVector<llvm::Instruction *, 4> Instructions;
    /// True if the node stores to memory, or if its value is used after the
    /// loop. Each seed belongs to exactly one loop after a distribution.
    bool IsSeed = false;
    /// True if a branch of the loop needs the node. All loops then need it.
    bool IsShared = false;
  };
  struct Edge {
    /// Indices of nodes. `To` depends on `From`.
    unsigned From, To;
    DependenceKind Kind;
    bool operator==(const Edge &) const = default;
  };
  /// \p First must be executed before \p Second.
  struct MemoryDependence {
    llvm::Instruction *First, *Second;
    /// True if the dependence forbids to execute several iterations at once.
    bool PreventsVectors;
  };

  /// Returns the graph of \p L, or Unsupported with the reason why the loop
  /// cannot be distributed. The function does not change the loop. The graph is
  /// valid until the loop changes.
  static Expected<DependenceGraph> build(llvm::Loop &L,
                                         const LoopAnalyses &Analyses);

  llvm::Loop &loop() const { return *L; }
  const llvm::LoopAccessInfo &accesses() const { return *Accesses; }
  /// The analysis to which accesses() belongs. It is the graph's own, because
  /// LLVM's shared one keeps results of loops that have changed.
  llvm::LoopAccessInfoManager &accessManager() const { return *Manager; }
  /// The nodes, ordered by their first instructions.
  llvm::ArrayRef<Node> nodes() const { return Nodes; }
  llvm::ArrayRef<Edge> edges() const { return Edges; }
  /// The indices of the seeds, in ascending order.
  llvm::ArrayRef<unsigned> seeds() const { return Seeds; }
  llvm::ArrayRef<MemoryDependence> memoryDependences() const {
    return Dependences;
  }
  /// Returns the index of the node that contains \p I, an instruction of the
  /// loop.
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
