//===- ModuleEmbedder.cpp - A module as a vector, time and again ----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A module's histogram is summed anew each time, in the order of its
/// functions, rather than kept up to date by differences: the sum takes a small
/// part of what counting takes, and with flow its terms are fractions, of which
/// differences would not add up to the same number.
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
        // The analysis manager takes what may be changed, and changes nothing.
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
               "': expected the histogram of its IR, found that of an earlier "
               "state: a pass changed it and said that it did not")
                  .str()};
  }
  return Error::success();
}

} // namespace MLBridge
