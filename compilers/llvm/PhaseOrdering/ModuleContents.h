//===- ModuleContents.h - One module in the place of another ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Who has a compiler's module has the object itself, and cannot be given
/// another: what is in it is.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_MODULECONTENTS_H
#define MLBRIDGE_LLVM_PHASEORDERING_MODULECONTENTS_H

namespace llvm {
class Module;
} // namespace llvm

namespace MLBridge {

/// Has \p M be what \p From is, a changed copy of it in the same context, which
/// is empty then. Whatever pointed to functions, variables and metadata of \p M
/// points to nothing: analyses of them are to be forgotten.
void replaceContents(llvm::Module &M, llvm::Module &From);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_MODULECONTENTS_H
