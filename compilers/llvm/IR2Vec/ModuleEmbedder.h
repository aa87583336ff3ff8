//===- ModuleEmbedder.h - Embeddings of a changing module -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModuleEmbedder: IR2Vec embeddings of a module and its functions while passes
/// change it. The counts of a function are an LLVM analysis
/// (EntityHistogramAnalysis), so the pass manager decides what must be counted
/// again.
/// \code
///   ModuleEmbedder Embedder(*Vocabulary, {});
///   Embedder.registerAnalyses(FAM, PIC);  // those of the passes
///   for (...) {
///     MPM.run(M, MAM);
///     Embedder.embed(M, FAM, Observation);
///   }
/// \endcode
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_IR2VEC_MODULEEMBEDDER_H
#define MLBRIDGE_LLVM_IR2VEC_MODULEEMBEDDER_H

#include "IR2Vec/EmbeddingVocabulary.h"
#include "IR2Vec/KeptHistograms.h"

#include <cstddef>

namespace llvm {
class PassInstrumentationCallbacks;
} // namespace llvm

namespace MLBridge {

struct EmbeddingOptions {
  EmbeddingKind Kind = EmbeddingKind::Symbolic;
  Normalization Normalize = Normalization::PerInstruction;
};

/// Used by one thread at a time. Embedders of several threads may share a
/// vocabulary.
class ModuleEmbedder {
public:
  /// \p Vocabulary must outlive this object.
  ModuleEmbedder(const EmbeddingVocabulary &Vocabulary,
                 EmbeddingOptions Options)
      : Vocabulary(Vocabulary), Options(Options) {}

  /// Registers the histograms of this kind of embedding with \p FAM. False if
  /// \p FAM already has histograms, since a manager supports one kind.
  bool registerAnalyses(llvm::FunctionAnalysisManager &FAM);
  /// The same, and keeps histograms across passes that only set attributes
  /// (KeptHistograms). \p Callbacks are those of the passes.
  bool registerAnalyses(llvm::FunctionAnalysisManager &FAM,
                        llvm::PassInstrumentationCallbacks &Callbacks);

  /// Makes functions be counted again after each run of InstCombine, whatever
  /// it reports: LLVM 22's InstCombine sometimes replaces a variable by a
  /// constant and reports no change (one function of sqlite3 under -Oz; no
  /// other pass of -Oz is known to do so). Without this, the old operand is
  /// counted until the function changes again; with it, each run of InstCombine
  /// costs a count of all functions. \p Callbacks are those of the passes; both
  /// arguments must outlive the passes.
  static void distrustInstCombine(llvm::PassInstrumentationCallbacks &Callbacks,
                                  llvm::FunctionAnalysisManager &FAM);

  /// The sum over the functions of \p M. Counts only functions without a
  /// histogram in \p FAM.
  EntityHistogram histogram(llvm::Module &M,
                            llvm::FunctionAnalysisManager &FAM);
  const EntityHistogram &histogram(llvm::Function &F,
                                   llvm::FunctionAnalysisManager &FAM);

  /// Write embeddings to \p Into, whose length is the vocabulary's dimension.
  void embed(llvm::Module &M, llvm::FunctionAnalysisManager &FAM,
             llvm::MutableArrayRef<float> Into);
  void embed(llvm::Function &F, llvm::FunctionAnalysisManager &FAM,
             llvm::MutableArrayRef<float> Into);
  /// The embedding of one instruction: Symbolic, and not normalized.
  void embed(const llvm::Instruction &I,
             llvm::MutableArrayRef<float> Into) const;

  /// The number of functions counted so far.
  std::size_t functionsCounted() const { return FunctionsCounted; }

  /// Counts every function of \p M again and compares. The Error names the
  /// first function with an outdated histogram in \p FAM, because a pass
  /// changed the function but reported no change. For debugging passes; takes
  /// the time that the analysis saves.
  Error verify(llvm::Module &M, llvm::FunctionAnalysisManager &FAM) const;

  const EmbeddingVocabulary &vocabulary() const { return Vocabulary; }
  const EmbeddingOptions &options() const { return Options; }

private:
  const EmbeddingVocabulary &Vocabulary;
  const EmbeddingOptions Options;
  std::shared_ptr<const KeptHistograms> Kept;
  std::size_t FunctionsCounted = 0;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_IR2VEC_MODULEEMBEDDER_H
