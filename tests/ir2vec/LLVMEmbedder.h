//===- LLVMEmbedder.h - Embeddings by LLVM itself ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What ours is held against: LLVM's own embeddings, by a vocabulary that LLVM
/// has read itself, and a set of analysis managers.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_IR2VEC_LLVMEMBEDDER_H
#define MLBRIDGE_TESTS_IR2VEC_LLVMEMBEDDER_H

#include "IR2Vec/ModuleEmbedder.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/IR2Vec.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"

#include <cmath>
#include <string>

namespace MLBridge::test {

/// All analyses of LLVM, for passes that \p Instrumentation watches.
struct AnalysisManagers {
  explicit AnalysisManagers(
      llvm::PassInstrumentationCallbacks *Instrumentation = nullptr)
      : Builder(nullptr, llvm::PipelineTuningOptions(), std::nullopt,
                Instrumentation) {}

  /// After the caller has registered its own.
  void registerLLVMs() {
    Builder.registerModuleAnalyses(Modules);
    Builder.registerCGSCCAnalyses(CallGraphs);
    Builder.registerFunctionAnalyses(Functions);
    Builder.registerLoopAnalyses(Loops);
    Builder.crossRegisterProxies(Loops, Functions, CallGraphs, Modules);
  }

  llvm::PassBuilder Builder;
  llvm::LoopAnalysisManager Loops;
  llvm::FunctionAnalysisManager Functions;
  llvm::CGSCCAnalysisManager CallGraphs;
  llvm::ModuleAnalysisManager Modules;
};

/// LLVM's vocabulary, as -ir2vec-vocab-path reads it from \p Path. Invalid, and
/// an error of the module's context, if it cannot.
inline llvm::ir2vec::Vocabulary readByLLVM(const std::string &Path,
                                           llvm::Module &M) {
  auto &Options = llvm::cl::getRegisteredOptions();
  auto Found = Options.find("ir2vec-vocab-path");
  if (Found == Options.end())
    return {};
  // There may have been another file.
  Found->second->reset();
  if (Found->second->addOccurrence(1, "ir2vec-vocab-path", Path))
    return {};
  llvm::ModuleAnalysisManager MAM;
  MAM.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
  return llvm::IR2VecVocabAnalysis().run(M, MAM);
}

/// Whether two embeddings are the same to 1e-5 of each element, or, where one
/// is what large numbers leave of each other, to 1e-12 of the largest.
inline bool isSame(llvm::ArrayRef<float> Ours,
                   const llvm::ir2vec::Embedding &LLVMs) {
  if (Ours.size() != LLVMs.size())
    return false;
  constexpr double Tolerance = 1e-5, Rounding = 1e-12;
  double Largest = 0;
  for (double Element : LLVMs)
    Largest = std::max(Largest, std::abs(Element));
  for (std::size_t I = 0; I != Ours.size(); ++I)
    if (!(std::abs(Ours[I] - LLVMs[I]) <=
          Tolerance * std::abs(LLVMs[I]) + Rounding * Largest))
      return false;
  return true;
}

} // namespace MLBridge::test

#endif // MLBRIDGE_TESTS_IR2VEC_LLVMEMBEDDER_H
