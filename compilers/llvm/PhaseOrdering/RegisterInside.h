//===- RegisterInside.h - What else takes part in an episode ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RegisterInside: how other optimisations of the plug-in take part in an
/// episode, whose passes are built by a PassBuilder of its own. Phase ordering
/// includes none of them; Plugin.cpp hands it the function.
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

/// Registers with \p Inner, which builds what a pass runs on its own module
/// \p M or on copies of it. \p Outer has the analyses around that pass. All of
/// them outlive what \p Inner builds.
using RegisterInsideOf = void (*)(llvm::PassBuilder &Inner, llvm::Module &M,
                                  llvm::ModuleAnalysisManager &Outer);

/// The same inside one pass. It may be empty.
using RegisterInside = std::function<void(llvm::PassBuilder &Inner)>;

inline RegisterInside registerInside(RegisterInsideOf Register, llvm::Module &M,
                                     llvm::ModuleAnalysisManager &Outer) {
  return
      [=, &M, &Outer](llvm::PassBuilder &Inner) { Register(Inner, M, Outer); };
}

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_REGISTERINSIDE_H
