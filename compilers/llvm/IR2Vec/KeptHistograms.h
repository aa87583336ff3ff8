//===- KeptHistograms.h - What passes of attributes leave -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// KeptHistograms: of functions, over those passes of a module that change
/// nothing but attributes and do not say so. LLVM's pass manager forgets all
/// analyses of all functions there; a histogram has no attributes in it.
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

/// Whatever else runs then makes it empty, so what it has is of functions as
/// they are. Only one who changes a function in between without a pass has to
/// call forget(). Used by one thread at a time.
class KeptHistograms {
public:
  /// Takes what \p FAM knows before each such pass of \p Callbacks, which are
  /// those of the passes. \p FAM outlives them.
  static std::shared_ptr<KeptHistograms>
  follow(llvm::PassInstrumentationCallbacks &Callbacks,
         llvm::FunctionAnalysisManager &FAM);

  /// Null, if it has none of \p F.
  const EntityHistogram *find(const llvm::Function &F) const;
  void forget() { Histograms.clear(); }

private:
  void take(const llvm::Module &M, llvm::FunctionAnalysisManager &FAM);

  llvm::DenseMap<const llvm::Function *, EntityHistogram> Histograms;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_IR2VEC_KEPTHISTOGRAMS_H
