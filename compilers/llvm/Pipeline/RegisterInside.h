//===- RegisterInside.h - Other optimisations in an episode -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RegisterInside is a function that adds other optimisations of the plug-in to
/// an episode. It is needed because a separate PassBuilder builds the passes of
/// an episode. Plugin.cpp passes the function, so phase ordering does not
/// depend on the other optimisations.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PIPELINE_REGISTERINSIDE_H
#define MLBRIDGE_LLVM_PIPELINE_REGISTERINSIDE_H

#include "llvm/IR/PassManager.h"

#include <functional>

namespace llvm {
class Module;
class PassBuilder;
} // namespace llvm

namespace MLBridge {

/// Registers an optimisation with \p Inner. \p Inner builds the passes that an
/// outer pass runs on its module \p M or on copies of \p M. \p Outer has the
/// analyses of the outer pass. All arguments must outlive the passes that \p
/// Inner builds.
using RegisterInsideOf = void (*)(llvm::PassBuilder &Inner, llvm::Module &M,
                                  llvm::ModuleAnalysisManager &Outer);

/// A RegisterInsideOf with the last two arguments bound. It may be empty.
using RegisterInside = std::function<void(llvm::PassBuilder &Inner)>;

inline RegisterInside registerInside(RegisterInsideOf Register, llvm::Module &M,
                                     llvm::ModuleAnalysisManager &Outer) {
  return
      [=, &M, &Outer](llvm::PassBuilder &Inner) { Register(Inner, M, Outer); };
}

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PIPELINE_REGISTERINSIDE_H
