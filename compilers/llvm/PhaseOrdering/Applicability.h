//===- Applicability.h - When phase ordering applies ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Decides for which modules a model may replace LLVM's pipeline. LLVM's
/// pipelines do more than optimise, and none of that may be lost.
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

/// True if functions marked `optsize` or `minsize` make up most of the code
/// generated from \p M, counted in instructions.
bool isMostlyForSize(const llvm::Module &M);

/// Why the pipelines that \p PB builds must stay; empty if they can be
/// replaced. Profiles describe the code at one position in a pipeline, and so
/// the passes that write and read profiles depend on that position.
llvm::StringRef whyNotReplaced(llvm::PassBuilder &PB);
/// The same for a pipeline for \p M.
llvm::StringRef whyNotReplaced(const llvm::Module &M);

/// Why the code that a search would measure differs from the final code of \p
/// M; empty if it does not, as far as the module shows.
llvm::StringRef whyNotMeasured(const llvm::Module &M);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_APPLICABILITY_H
