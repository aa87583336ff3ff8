//===- ModuleEmbedder.cpp - Embeddings of a changing module ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Computes the histogram of a module as the sum of its functions' histograms,
/// in the order of the functions. The sum is computed again each time. It is
/// not updated with the differences of changed functions, because flow-aware
/// counts are fractions and rounding errors would accumulate. Summing is much
/// faster than counting.
///
//===----------------------------------------------------------------------===//

#include "IR2Vec/ModuleEmbedder.h"

#include "llvm/IR/Module.h"
#include "llvm/IR/PassInstrumentation.h"

using namespace llvm;

namespace MLBridge {

bool ModuleEmbedder::registerAnalyses(FunctionAnalysisManager &FAM) {
  return FAM.registerPass(
      [this] { return EntityHistogramAnalysis(Options.Kind, Kept); });
}

bool ModuleEmbedder::registerAnalyses(FunctionAnalysisManager &FAM,
                                      PassInstrumentationCallbacks &Callbacks) {
  Kept = KeptHistograms::follow(Callbacks, FAM);
  return registerAnalyses(FAM);
}

void ModuleEmbedder::distrustInstCombine(
    PassInstrumentationCallbacks &Callbacks, FunctionAnalysisManager &FAM) {
  Callbacks.registerAfterPassCallback(
      [&FAM](StringRef Pass, const Any &IR, const PreservedAnalyses &) {
        const auto *F = any_cast<const Function *>(&IR);
        if (!F || Pass != "InstCombinePass")
          return;
        PreservedAnalyses Others = PreservedAnalyses::all();
        Others.abandon<EntityHistogramAnalysis>();
        // The cast is safe, because invalidate() does not change the function.
        FAM.invalidate(const_cast<Function &>(**F), Others);
      });
}

const EntityHistogram &ModuleEmbedder::histogram(Function &F,
                                                 FunctionAnalysisManager &FAM) {
  if (const auto *Known = FAM.getCachedResult<EntityHistogramAnalysis>(F))
    return *Known;
  FunctionsCounted += !Kept || !Kept->find(F);
  return FAM.getResult<EntityHistogramAnalysis>(F);
}

EntityHistogram ModuleEmbedder::histogram(Module &M,
                                          FunctionAnalysisManager &FAM) {
  EntityHistogram Sum;
  for (Function &F : M)
    if (!F.isDeclaration())
      Sum += histogram(F, FAM);
  return Sum;
}

void ModuleEmbedder::embed(Module &M, FunctionAnalysisManager &FAM,
                           MutableArrayRef<float> Into) {
  Vocabulary.embed(histogram(M, FAM), Options.Normalize, Into);
}

void ModuleEmbedder::embed(Function &F, FunctionAnalysisManager &FAM,
                           MutableArrayRef<float> Into) {
  Vocabulary.embed(histogram(F, FAM), Options.Normalize, Into);
}

void ModuleEmbedder::embed(const Instruction &I,
                           MutableArrayRef<float> Into) const {
  Vocabulary.embed(EntityHistogram::of(I), Normalization::None, Into);
}

Error ModuleEmbedder::verify(Module &M, FunctionAnalysisManager &FAM) const {
  for (Function &F : M) {
    if (F.isDeclaration())
      continue;
    const auto *Known = FAM.getCachedResult<EntityHistogramAnalysis>(F);
    if (Known && *Known != EntityHistogram::of(F, Options.Kind))
      return {ErrorCode::Malformed,
              ("function '" + F.getName() +
               "': expected the histogram of the current IR, found an outdated "
               "one: a pass changed the function but reported no change")
                  .str()};
  }
  return Error::success();
}

} // namespace MLBridge
