//===- KeptHistograms.h - Keeps functions' histograms -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// KeptHistograms keeps the histograms of functions across module passes that
/// change only attributes. Some of these passes report that they preserve
/// nothing, so LLVM's pass manager drops all function analyses. The histograms
/// remain valid, because attributes do not affect them.
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

/// The stored histograms always describe the current IR, because passes that
/// may change more than attributes clear them. Call forget() after you change a
/// function outside of a pass. Only one thread at a time may use an object.
class KeptHistograms {
public:
  /// Returns an object that follows the passes that run with \p Callbacks.
  /// Before each pass that changes only attributes, the object copies the
  /// histograms that \p FAM has cached. \p FAM must outlive the callbacks.
  static std::shared_ptr<KeptHistograms>
  follow(llvm::PassInstrumentationCallbacks &Callbacks,
         llvm::FunctionAnalysisManager &FAM);

  /// Returns the stored histogram of \p F, or null if none is stored.
  const EntityHistogram *find(const llvm::Function &F) const;
  void forget() { Histograms.clear(); }

private:
  void take(const llvm::Module &M, llvm::FunctionAnalysisManager &FAM);

  llvm::DenseMap<const llvm::Function *, EntityHistogram> Histograms;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_IR2VEC_KEPTHISTOGRAMS_H
