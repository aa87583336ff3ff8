//===- ModuleContents.h - Replaces the contents of a module -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A pass cannot replace the compiler's module object, only its contents.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_MODULECONTENTS_H
#define MLBRIDGE_LLVM_PHASEORDERING_MODULECONTENTS_H

namespace llvm {
class Module;
} // namespace llvm

namespace MLBridge {

/// Moves the contents of \p From, a changed copy of \p M in the same context,
/// into \p M, and leaves \p From empty. Pointers to functions, variables and
/// metadata of \p M become invalid: invalidate their analyses.
void replaceContents(llvm::Module &M, llvm::Module &From);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_MODULECONTENTS_H
