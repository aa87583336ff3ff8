//===- RegisterInside.h - Other optimisations in an episode -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RegisterInside: adds other optimisations of the plug-in to an episode, whose
/// passes are built by a separate PassBuilder. Phase ordering does not depend
/// on those optimisations; Plugin.cpp passes the function.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_REGISTERINSIDE_H
#define MLBRIDGE_LLVM_PHASEORDERING_REGISTERINSIDE_H

#include "llvm/IR/PassManager.h"

#include <functional>

namespace llvm {
class Module;
class PassBuilder;
} // namespace llvm

namespace MLBridge {

/// Registers with \p Inner, which builds the passes that another pass runs on
/// its module \p M or on copies of it. \p Outer has the analyses of that pass.
/// All arguments must outlive what \p Inner builds.
using RegisterInsideOf = void (*)(llvm::PassBuilder &Inner, llvm::Module &M,
                                  llvm::ModuleAnalysisManager &Outer);

/// The same for one pass. May be empty.
using RegisterInside = std::function<void(llvm::PassBuilder &Inner)>;

inline RegisterInside registerInside(RegisterInsideOf Register, llvm::Module &M,
                                     llvm::ModuleAnalysisManager &Outer) {
  return
      [=, &M, &Outer](llvm::PassBuilder &Inner) { Register(Inner, M, Outer); };
}

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_REGISTERINSIDE_H
