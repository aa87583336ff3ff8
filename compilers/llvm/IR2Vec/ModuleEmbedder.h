//===- ModuleEmbedder.h - Embeddings of a changing module -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModuleEmbedder computes IR2Vec embeddings of a module and its functions
/// while passes change the module. An LLVM analysis, EntityHistogramAnalysis,
/// counts each function. Therefore, LLVM's pass manager decides which functions
/// must be counted again.
/// \code
///   ModuleEmbedder Embedder(*Vocabulary, {});
///   Embedder.registerAnalyses(FAM, PIC);  // the managers of the passes
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

/// Only one thread at a time may use an embedder. Embedders of several threads
/// may share a vocabulary.
class ModuleEmbedder {
public:
  /// \p Vocabulary must outlive this object.
  ModuleEmbedder(const EmbeddingVocabulary &Vocabulary,
                 EmbeddingOptions Options)
      : Vocabulary(Vocabulary), Options(Options) {}

  /// Registers the histogram analysis for this kind of embedding with \p FAM.
  /// Returns false if \p FAM already has a histogram analysis, because a
  /// manager supports only one kind.
  bool registerAnalyses(llvm::FunctionAnalysisManager &FAM);
  /// Registers the histogram analysis and also keeps histograms across passes
  /// that only set attributes (see KeptHistograms). \p Callbacks must be the
  /// callbacks with which the passes run.
  bool registerAnalyses(llvm::FunctionAnalysisManager &FAM,
                        llvm::PassInstrumentationCallbacks &Callbacks);

  /// Makes each run of InstCombine invalidate the histogram of its function,
  /// even if InstCombine reports no change. LLVM 22's InstCombine sometimes
  /// replaces a variable by a constant and reports no change. This occurs in
  /// one function of sqlite3 at -Oz. No other pass of -Oz is known to do so.
  /// Without this function, such a histogram stays outdated until another pass
  /// changes the function. With this function, all functions are counted again
  /// after each run of InstCombine. \p Callbacks must be the callbacks with
  /// which the passes run. Both arguments must outlive the passes.
  static void distrustInstCombine(llvm::PassInstrumentationCallbacks &Callbacks,
                                  llvm::FunctionAnalysisManager &FAM);

  /// Returns the sum of the histograms of all functions of \p M. Only functions
  /// without a cached histogram in \p FAM are counted.
  EntityHistogram histogram(llvm::Module &M,
                            llvm::FunctionAnalysisManager &FAM);
  const EntityHistogram &histogram(llvm::Function &F,
                                   llvm::FunctionAnalysisManager &FAM);

  /// These functions write the embedding of a module or of a function to \p
  /// Into. The length of \p Into must be the vocabulary's dimension.
  void embed(llvm::Module &M, llvm::FunctionAnalysisManager &FAM,
             llvm::MutableArrayRef<float> Into);
  void embed(llvm::Function &F, llvm::FunctionAnalysisManager &FAM,
             llvm::MutableArrayRef<float> Into);
  /// Writes the embedding of one instruction to \p Into. It is symbolic and not
  /// normalized.
  void embed(const llvm::Instruction &I,
             llvm::MutableArrayRef<float> Into) const;

  /// The number of functions counted so far.
  std::size_t functionsCounted() const { return FunctionsCounted; }

  /// Checks the cached histograms, for debugging passes. Counts every function
  /// of \p M again, so it is slow. If a pass changed a function but reported no
  /// change, the histogram in \p FAM is outdated. The error names the first
  /// such function.
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
