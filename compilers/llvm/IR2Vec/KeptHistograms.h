//===- KeptHistograms.h - Keeps histograms across attribute passes -*- C++
//-*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// KeptHistograms: keeps the histograms of functions across module passes that
/// change only attributes without reporting it. LLVM's pass manager then drops
/// all function analyses, although attributes do not affect histograms.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_IR2VEC_KEPTHISTOGRAMS_H
#define MLBRIDGE_LLVM_IR2VEC_KEPTHISTOGRAMS_H

#include "IR2Vec/EntityHistogram.h"

#include "llvm/ADT/DenseMap.h"

#include <memory>

namespace llvm {
class Module;
class PassInstrumentationCallbacks;
} // namespace llvm

namespace MLBridge {

/// Any other pass clears the histograms, so entries always describe the current
/// IR. Call forget() after changing a function outside of a pass. Used by one
/// thread at a time.
class KeptHistograms {
public:
  /// Before each such pass that runs with \p Callbacks, copies the histograms
  /// that \p FAM has. \p FAM must outlive the callbacks.
  static std::shared_ptr<KeptHistograms>
  follow(llvm::PassInstrumentationCallbacks &Callbacks,
         llvm::FunctionAnalysisManager &FAM);

  /// The histogram of \p F, or null.
  const EntityHistogram *find(const llvm::Function &F) const;
  void forget() { Histograms.clear(); }

private:
  void take(const llvm::Module &M, llvm::FunctionAnalysisManager &FAM);

  llvm::DenseMap<const llvm::Function *, EntityHistogram> Histograms;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_IR2VEC_KEPTHISTOGRAMS_H
