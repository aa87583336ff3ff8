//===- EntityHistogram.h - Counts of IR entities ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// EntityHistogram holds the counts of IR entities from which an IR2Vec
/// embedding is computed. Symbolic and flow-aware embeddings are both linear in
/// these counts. Therefore, one traversal counts the entities, and
/// EmbeddingVocabulary::embed() multiplies the counts by the vectors
/// afterwards.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_IR2VEC_ENTITYHISTOGRAM_H
#define MLBRIDGE_LLVM_IR2VEC_ENTITYHISTOGRAM_H

#include "IR2Vec/IREntities.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/PassManager.h"

#include <array>
#include <cstdint>
#include <memory>

namespace llvm {
class Module;
} // namespace llvm

namespace MLBridge {

enum class EmbeddingKind : std::uint8_t {
  /// LLVM's symbolic embedding. It sums the vectors of each instruction's
  /// opcode, type, operand kinds and predicate.
  Symbolic,
  /// A flow-aware embedding with bounded weights. If an earlier instruction
  /// defines an operand, the embedding adds this instruction and its operands
  /// instead of the operand's kind. Such an operand has 0.2 times its user's
  /// weight, as in the IR2Vec paper, or less if the user has over two operands.
  /// All of them together have at most half of the user's weight, so a
  /// function's total weight is at most twice its number of instructions.
  FlowAware,
  /// LLVM's flow-aware embedding, in which operands have the full weight of
  /// their user. The weight doubles with each `x = x + x`, so the embedding is
  /// unsuitable for networks. LLVM's weights can become infinite. Here,
  /// MaxFlowWeight limits them.
  LLVMFlowAware,
};

/// Returns "symbolic", "flow-aware" or "llvm-flow-aware".
llvm::StringRef embeddingKindName(EmbeddingKind Kind);

class EntityHistogram {
public:
  /// The maximum weight of an instruction in an LLVMFlowAware embedding.
  static constexpr double MaxFlowWeight = 18446744073709551616.0; // 2^64

  EntityHistogram() = default;
  /// Returns the histogram of one instruction. Its kind is Symbolic.
  static EntityHistogram of(const llvm::Instruction &I);
  /// Returns the histogram of all blocks of \p F that are reachable from the
  /// entry. It is empty if \p F has no body.
  static EntityHistogram of(const llvm::Function &F,
                            EmbeddingKind Kind = EmbeddingKind::Symbolic);
  /// Returns the histogram of all functions with a body. ModuleEmbedder is
  /// faster if the module changes and is counted repeatedly.
  static EntityHistogram of(const llvm::Module &M,
                            EmbeddingKind Kind = EmbeddingKind::Symbolic);

  /// The count of each entity. For flow-aware kinds, it is a weighted sum.
  llvm::ArrayRef<double> counts() const { return Counts; }
  double operator[](unsigned Entity) const { return Counts[Entity]; }
  /// The number of counted instructions.
  std::uint64_t instructions() const { return Instructions; }

  EntityHistogram &operator+=(const EntityHistogram &Other);
  bool operator==(const EntityHistogram &) const = default;

private:
  std::array<double, NumIREntities> Counts{};
  std::uint64_t Instructions = 0;
};

class KeptHistograms;

/// An LLVM analysis whose result is a function's histogram. The result stays
/// cached while passes preserve the function. If KeptHistograms has the
/// function's histogram, the analysis returns it instead of counting. Register
/// it like any other analysis:
/// \code
///   FAM.registerPass([] { return EntityHistogramAnalysis(Kind); });
/// \endcode
class EntityHistogramAnalysis
    : public llvm::AnalysisInfoMixin<EntityHistogramAnalysis> {
  friend llvm::AnalysisInfoMixin<EntityHistogramAnalysis>;
  static llvm::AnalysisKey Key;

public:
  using Result = EntityHistogram;

  explicit EntityHistogramAnalysis(
      EmbeddingKind Kind = EmbeddingKind::Symbolic,
      std::shared_ptr<const KeptHistograms> Kept = nullptr)
      : Kind(Kind), Kept(std::move(Kept)) {}
  Result run(llvm::Function &F, llvm::FunctionAnalysisManager &);

private:
  EmbeddingKind Kind;
  std::shared_ptr<const KeptHistograms> Kept;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_IR2VEC_ENTITYHISTOGRAM_H
