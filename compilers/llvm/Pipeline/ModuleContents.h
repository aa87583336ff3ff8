//===- ModuleContents.h - Replaces the contents of a module -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// replaceContents() replaces the contents of a module. A pass needs this
/// function because it cannot replace the compiler's module object itself.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PIPELINE_MODULECONTENTS_H
#define MLBRIDGE_LLVM_PIPELINE_MODULECONTENTS_H

namespace llvm {
class Module;
} // namespace llvm

namespace MLBridge {

/// Moves the contents of \p From into \p M and leaves \p From empty. \p From
/// must be a changed copy of \p M in the same context. Pointers to functions,
/// variables and metadata of \p M become invalid, so the caller must invalidate
/// the analyses of \p M.
void replaceContents(llvm::Module &M, llvm::Module &From);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PIPELINE_MODULECONTENTS_H
