//===- LLVMEmbedder.h - Embeddings computed by LLVM -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The reference for this library's embeddings: LLVM's own embeddings, from a
/// vocabulary that LLVM has read. Also a set of analysis managers.
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

/// All of LLVM's analyses, for passes that \p Instrumentation observes.
struct AnalysisManagers {
  explicit AnalysisManagers(
      llvm::PassInstrumentationCallbacks *Instrumentation = nullptr)
      : Builder(nullptr, llvm::PipelineTuningOptions(), std::nullopt,
                Instrumentation) {}

  /// Registers LLVM's analyses. Call it after you have registered your own.
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

/// Returns LLVM's vocabulary, read from \p Path as the option
/// -ir2vec-vocab-path does. On failure, returns an invalid vocabulary, and the
/// module's context has the error.
inline llvm::ir2vec::Vocabulary readByLLVM(const std::string &Path,
                                           llvm::Module &M) {
  auto &Options = llvm::cl::getRegisteredOptions();
  auto Found = Options.find("ir2vec-vocab-path");
  if (Found == Options.end())
    return {};
  // An earlier call may have set the option.
  Found->second->reset();
  if (Found->second->addOccurrence(1, "ir2vec-vocab-path", Path))
    return {};
  llvm::ModuleAnalysisManager MAM;
  MAM.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
  return llvm::IR2VecVocabAnalysis().run(M, MAM);
}

/// True if all elements agree within a relative 1e-5. The tolerance also
/// includes 1e-12 of the largest element, for elements in which large numbers
/// cancel.
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
