//===- LoopPrinterPass.h - Prints the features of loops ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// LoopPrinterPass prints a line of JSON to stderr for each innermost loop. The
/// line has all features of the models for distribution and factors, or the key
/// `declined` with the reason why no model decides about the loop. The keys
/// `function`, `header` (a basic block) and, with debug information, `line`
/// identify the loop.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPPRINTERPASS_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPPRINTERPASS_H

#include "llvm/IR/PassManager.h"

namespace MLBridge {

class LoopPrinterPass : public llvm::PassInfoMixin<LoopPrinterPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &F,
                              llvm::FunctionAnalysisManager &FAM);
  static bool isRequired() { return true; }
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPPRINTERPASS_H
