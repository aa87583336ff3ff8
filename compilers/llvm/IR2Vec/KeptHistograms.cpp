//===- KeptHistograms.cpp - Keeps histograms across attribute passes ------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Keeps histograms across two passes of LLVM 22. These passes only set
/// attributes of functions but report that they preserve nothing.
///
//===----------------------------------------------------------------------===//

#include "IR2Vec/KeptHistograms.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassInstrumentation.h"

using namespace llvm;

namespace MLBridge {

static bool setsAttributesOnly(StringRef Pass) {
  return is_contained({"InferFunctionAttrsPass", "ForceFunctionAttrsPass"},
                      Pass);
}

std::shared_ptr<KeptHistograms>
KeptHistograms::follow(PassInstrumentationCallbacks &Callbacks,
                       FunctionAnalysisManager &FAM) {
  auto Kept = std::make_shared<KeptHistograms>();
  Callbacks.registerBeforeNonSkippedPassCallback(
      [Kept, &FAM](StringRef Pass, const Any &IR) {
        const auto *M = any_cast<const Module *>(&IR);
        if (M && setsAttributesOnly(Pass))
          Kept->take(**M, FAM);
        else
          Kept->forget();
      });
  return Kept;
}

void KeptHistograms::take(const Module &M, FunctionAnalysisManager &FAM) {
  for (const Function &F : M)
    // The cast is safe, because getCachedResult() does not change the function.
    if (const auto *Known = FAM.getCachedResult<EntityHistogramAnalysis>(
            const_cast<Function &>(F)))
      Histograms[&F] = *Known;
}

const EntityHistogram *KeptHistograms::find(const Function &F) const {
  const auto Found = Histograms.find(&F);
  return Found == Histograms.end() ? nullptr : &Found->second;
}

} // namespace MLBridge
