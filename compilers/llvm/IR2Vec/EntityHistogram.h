//===- EntityHistogram.h - Counts of IR entities ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// EntityHistogram: the counts of IR entities from which an IR2Vec embedding is
/// computed. The embedding is linear in the counts
/// (EmbeddingVocabulary::embed), with or without flow, so the IR is traversed
/// once and without vectors.
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
  /// Counts an instruction's opcode, its type, its operands' kinds and its
  /// predicate: LLVM's symbolic embedding.
  Symbolic,
  /// An operand that an instruction defines contributes that instruction,
  /// including its own operands, with the paper's weight of operands. All
  /// operands of an instruction together weigh at most half of it, so the total
  /// weight of a function is at most twice its number of instructions.
  /// their number.
  FlowAware,
  /// LLVM's flow-aware embedding, in which such operands have full weight. The
  /// weight doubles with each `x = x + x`, which is unsuitable for networks.
  /// Weights are limited to MaxFlowWeight, where LLVM's grow to infinity.
  LLVMFlowAware,
};

/// "symbolic", "flow-aware" or "llvm-flow-aware".
llvm::StringRef embeddingKindName(EmbeddingKind Kind);

class EntityHistogram {
public:
  /// The maximum weight of an instruction in an LLVMFlowAware embedding.
  static constexpr double MaxFlowWeight = 18446744073709551616.0; // 2^64

  /// An empty histogram.
  EntityHistogram() = default;
  /// The histogram of one instruction without flow: Symbolic.
  static EntityHistogram of(const llvm::Instruction &I);
  /// The histogram of all blocks that are reachable from the entry; empty if \p
  /// F has no body.
  static EntityHistogram of(const llvm::Function &F,
                            EmbeddingKind Kind = EmbeddingKind::Symbolic);
  /// The histogram of all functions with a body. For repeated use on a changing
  /// module, see ModuleEmbedder.
  static EntityHistogram of(const llvm::Module &M,
                            EmbeddingKind Kind = EmbeddingKind::Symbolic);

  /// The count of each entity; a weighted sum with flow.
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

/// The histogram of a function, cached while passes preserve the function. Uses
/// kept histograms (KeptHistograms) instead of counting. Registered like any
/// analysis:
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
