//===- LoopObservation.h - The features of a loop ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// LoopObservation describes a loop and its dependence graph to a model. The
/// optional embeddings are IR2Vec vectors, as in the loop distribution of the
/// bridge's paper.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPOBSERVATION_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPOBSERVATION_H

#include "IR2Vec/EmbeddingVocabulary.h"
#include "LoopDistribution/DependenceGraph.h"

#include "MLCompilerBridge/FeatureSet.h"

#include <array>
#include <cstdint>
#include <vector>

namespace MLBridge {

class LoopObservation {
public:
  /// The columns of `nodes`. Counts are logarithms, log(1 + n).
  enum NodeColumn : std::size_t {
    Seed,          ///< 1 if the node is a seed (see DependenceGraph).
    Shared,        ///< 1 if the loop's branches need the node.
    LiveOut,       ///< 1 if the node is used after the loop.
    Conditional,   ///< 1 if not every iteration executes the node.
    Instructions,  ///< The number of instructions.
    Loads,         ///< The number of loads.
    Stores,        ///< The number of stores.
    Floating,      ///< Floating-point instructions.
    Divisions,     ///< Divisions, remainders and square roots.
    Integer,       ///< Integer instructions.
    Comparisons,   ///< Comparisons and selects.
    Conversions,   ///< Conversions.
    Calls,         ///< Calls.
    Recurrence,    ///< 1 if the node depends on itself across iterations.
    Induction,     ///< 1 if the recurrence is an induction.
    Reduction,     ///< 1 if the recurrence is a reorderable reduction.
    Ordered,       ///< 1 if it is a floating-point reduction in fixed order.
    ThroughMemory, ///< 1 if the recurrence goes through memory.
    Consecutive,   ///< Accesses to consecutive elements.
    Strided,       ///< Accesses with another constant stride.
    Invariant,     ///< Accesses to one address.
    Irregular,     ///< Other accesses.
    Bytes,         ///< The size of the largest accessed element, divided by 8.
    Throughput,    ///< LLVM's estimate of the reciprocal throughput.
    Latency,       ///< LLVM's estimate of the latency.
  };
  static constexpr std::size_t NodeColumns = Latency + 1;

  /// The columns of `loop`. Counts are logarithms, log(1 + n).
  enum LoopColumn : std::size_t {
    Iterations,      ///< The maximum number of iterations, or 0 if unknown.
    KnownIterations, ///< 1 if the number of iterations is constant.
    Depth,           ///< The depth of the loop.
    Blocks,          ///< The number of blocks.
    AllInstructions, ///< The number of instructions.
    Nodes,           ///< The number of nodes.
    Seeds,           ///< The number of seeds.
    Vectorizable,    ///< 1 if dependences through memory allow vectorizing.
    Checks,          ///< The number of pointer checks at run time.
    Assumptions,     ///< The number of other checks at run time.
    SafeWidth,       ///< The safe vector width in bits.
    RegisterWidth,   ///< The width of vector registers in bits.
    SmallestElement, ///< Bytes of the smallest accessed element.
    LargestElement,  ///< Bytes of the largest accessed element.
  };
  static constexpr std::size_t LoopColumns = LargestElement + 1;

  /// Describes a loop. With \p Vocabulary, also computes embeddings.
  LoopObservation(const DependenceGraph &Graph, const LoopAnalyses &Analyses,
                  const EmbeddingVocabulary *Vocabulary);

  /// Sets the features. \p Into borrows them from this object:
  ///
  /// - `nodes` float [n, 25]: the columns above, a row for each node.
  /// - `edges` int32 [m, 3]: the indices of two nodes, and the DependenceKind.
  ///   The second node depends on the first one.
  /// - `seeds` int32 [s]: the indices of the seeds.
  /// - `loop` float [14]: the columns above.
  /// - `embeddings` float [n, d]: only with a vocabulary, the sum of the
  ///   vectors of each node's instructions.
  void setFeatures(FeatureSet &Into) const;

private:
  void describeNode(const DependenceGraph &Graph, const LoopAnalyses &Analyses,
                    std::size_t Number);
  void describeLoop(const DependenceGraph &Graph, const LoopAnalyses &Analyses);

  std::vector<float> NodeRows;
  std::vector<std::int32_t> EdgeRows, SeedIndices;
  std::array<float, LoopColumns> LoopRow{};
  std::vector<float> Embeddings;
  std::size_t Dimension = 0;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPOBSERVATION_H
