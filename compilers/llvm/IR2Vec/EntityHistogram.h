//===- EntityHistogram.h - How often each IR entity occurs ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// EntityHistogram: all that an IR2Vec embedding knows of a piece of IR. The
/// embedding is linear in it (EmbeddingVocabulary::embed), whichever way flow
/// is taken into account, so the IR is walked once, with no vector in sight.
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
  /// An instruction is its opcode, its type, its operands' kinds and its
  /// predicate: LLVM's symbolic embedding.
  Symbolic,
  /// An operand that an instruction defines stands for that instruction, with
  /// all that this one stands for. It weighs as much as the paper gives an
  /// operand, but all operands of an instruction together at most half of it:
  /// so the instructions of a function together never weigh more than twice
  /// their number.
  FlowAware,
  /// LLVM's flow-aware embedding, in which such an operand has its full weight.
  /// That doubles with each `x = x + x`: no input for a network. A weight is
  /// cut off at MaxFlowWeight, where LLVM's goes on to infinity.
  LLVMFlowAware,
};

/// "symbolic", "flow-aware" or "llvm-flow-aware".
llvm::StringRef embeddingKindName(EmbeddingKind Kind);

class EntityHistogram {
public:
  /// Past this, an instruction's weight in an LLVMFlowAware embedding stays.
  static constexpr double MaxFlowWeight = 18446744073709551616.0; // 2^64

  /// Of nothing.
  EntityHistogram() = default;
  /// Of one instruction by itself, which is Symbolic.
  static EntityHistogram of(const llvm::Instruction &I);
  /// Of all blocks that can be reached from the entry; of nothing, if \p F has
  /// no body here.
  static EntityHistogram of(const llvm::Function &F,
                            EmbeddingKind Kind = EmbeddingKind::Symbolic);
  /// Of all functions with a body. See ModuleEmbedder for many times the same
  /// module.
  static EntityHistogram of(const llvm::Module &M,
                            EmbeddingKind Kind = EmbeddingKind::Symbolic);

  /// How often each entity occurs; a weighted sum, where flow counts.
  llvm::ArrayRef<double> counts() const { return Counts; }
  double operator[](unsigned Entity) const { return Counts[Entity]; }
  /// How many instructions were counted.
  std::uint64_t instructions() const { return Instructions; }

  EntityHistogram &operator+=(const EntityHistogram &Other);
  bool operator==(const EntityHistogram &) const = default;

private:
  std::array<double, NumIREntities> Counts{};
  std::uint64_t Instructions = 0;
};

class KeptHistograms;

/// The histogram of a function, for as long as the passes that run say that
/// they leave the function as it is, and of one that is kept no other is
/// counted. Registered like any analysis:
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
