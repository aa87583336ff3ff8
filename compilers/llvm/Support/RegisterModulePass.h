//===- RegisterModulePass.h - Names a pass for -passes ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// registerModulePass() makes a pass available to `opt -passes=NAME`.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SUPPORT_REGISTERMODULEPASS_H
#define MLBRIDGE_LLVM_SUPPORT_REGISTERMODULEPASS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Passes/PassBuilder.h"

namespace MLBridge {

/// Registers \p Pass with \p PB. Each use of \p Name in a pipeline adds a copy.
/// \p Name must outlive \p PB.
template <typename PassT>
void registerModulePass(llvm::PassBuilder &PB, llvm::StringRef Name,
                        const PassT &Pass) {
  PB.registerPipelineParsingCallback(
      [=](llvm::StringRef Given, llvm::ModulePassManager &Passes,
          llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) {
        if (Given != Name)
          return false;
        Passes.addPass(PassT(Pass));
        return true;
      });
}

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SUPPORT_REGISTERMODULEPASS_H
