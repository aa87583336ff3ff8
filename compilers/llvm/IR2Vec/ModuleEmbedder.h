//===- ModuleEmbedder.h - A module as a vector, time and again --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModuleEmbedder: IR2Vec embeddings of a module and its functions while passes
/// change it. What was counted of a function is an analysis of LLVM's pass
/// manager (EntityHistogramAnalysis), so it is that which says what is to be
/// counted again, as it does for every analysis that a compiler relies on.
/// \code
///   ModuleEmbedder Embedder(*Vocabulary, {});
///   Embedder.registerAnalyses(FAM, PIC);  // of the passes that are to be run
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

/// Used by one thread at a time; embedders of several threads may share a
/// vocabulary.
class ModuleEmbedder {
public:
  /// \p Vocabulary must outlive it.
  ModuleEmbedder(const EmbeddingVocabulary &Vocabulary,
                 EmbeddingOptions Options)
      : Vocabulary(Vocabulary), Options(Options) {}

  /// Makes \p FAM know the histograms of this kind of embedding. False if it
  /// knew some already: there is one kind to a manager.
  bool registerAnalyses(llvm::FunctionAnalysisManager &FAM);
  /// The same; and functions are not counted again after a pass that sets
  /// attributes only. \p Callbacks are those of the passes; see KeptHistograms.
  bool registerAnalyses(llvm::FunctionAnalysisManager &FAM,
                        llvm::PassInstrumentationCallbacks &Callbacks);

  /// Counts a function again whenever InstCombine has run on it, whatever that
  /// said: LLVM 22's at times puts a constant for a variable and reports no
  /// change (one function of sqlite3 under -Oz; no other pass of -Oz is known
  /// to do so). Without this, such an operand is counted as what it was until
  /// the function is changed again; with it, a run of InstCombine costs a count
  /// of all functions. \p Callbacks are those of the passes; both outlive them.
  static void distrustInstCombine(llvm::PassInstrumentationCallbacks &Callbacks,
                                  llvm::FunctionAnalysisManager &FAM);

  /// The sum over the functions of \p M. Only those are counted of which \p FAM
  /// has no histogram any more.
  EntityHistogram histogram(llvm::Module &M,
                            llvm::FunctionAnalysisManager &FAM);
  const EntityHistogram &histogram(llvm::Function &F,
                                   llvm::FunctionAnalysisManager &FAM);

  /// Embeddings; \p Into has the vocabulary's dimension.
  void embed(llvm::Module &M, llvm::FunctionAnalysisManager &FAM,
             llvm::MutableArrayRef<float> Into);
  void embed(llvm::Function &F, llvm::FunctionAnalysisManager &FAM,
             llvm::MutableArrayRef<float> Into);
  /// Of an instruction by itself: Symbolic, and not normalised.
  void embed(const llvm::Instruction &I,
             llvm::MutableArrayRef<float> Into) const;

  /// How many functions were counted so far.
  std::size_t functionsCounted() const { return FunctionsCounted; }

  /// Counts every function of \p M anew and compares: an Error that names the
  /// first of which \p FAM has an outdated histogram, because a pass changed it
  /// and said otherwise. For debugging passes, since it takes the time that the
  /// analysis saves.
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
