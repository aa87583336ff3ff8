//===- Applicability.h - Where phase ordering is in place -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Which modules a model may decide on. A pipeline of LLVM's does more than to
/// optimise: what is left out with it must not be missed.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_APPLICABILITY_H
#define MLBRIDGE_LLVM_PHASEORDERING_APPLICABILITY_H

#include "llvm/ADT/StringRef.h"

namespace llvm {
class Module;
class PassBuilder;
} // namespace llvm

namespace MLBridge {

/// Whether most of the code that \p M will be, by instructions, is to be small:
/// of functions marked `optsize` or `minsize`.
bool isMostlyForSize(const llvm::Module &M);

/// Why the pipelines that \p PB builds stay as they are, empty where they need
/// not: profiles are of the code as it is at one place in a pipeline, and so
/// are the passes that write and read them.
llvm::StringRef whyNotReplaced(llvm::PassBuilder &PB);
/// The same of a pipeline for \p M.
llvm::StringRef whyNotReplaced(const llvm::Module &M);

/// Why the code that a search would measure is not the code that is made of
/// \p M; empty where it is, as far as a module shows it.
llvm::StringRef whyNotMeasured(const llvm::Module &M);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_APPLICABILITY_H
