//===- SizeGuard.h - Keeps the smaller code ---------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `-mlbridge-size-guard` compiles each module twice. One copy is compiled as
/// -mlbridge-inliner, -mlbridge-phase-ordering and -mlbridge-size decide, and
/// one copy as the stock compiler decides. The smaller code is kept. If both
/// have the same size, the code of the stock compiler is kept.
///
/// **The size** is the size of the functions that the linker keeps, as far as
/// one file shows it: functions that the file must define, and all functions
/// that these use. Each function is assumed to have its own section. The linker
/// merges copies of a function from several files. With
/// -mlbridge-inliner-callee-files, each of N copies counts as 1/N of its size.
/// Without this option, each copy counts in full.
///
/// **Stock code.** The stock compiler's code is kept without a comparison, and
/// a remark says why, if the final code is not known: before a link with LTO,
/// with sanitizers or counters, and if the pipeline must not be replaced
/// (Applicability.h). It is also kept if the time of
/// -mlbridge-size-guard-budget is over. If it is kept, LLVM's pipeline runs on
/// the unchanged module, so the object file equals the stock compiler's.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SIZE_SIZEGUARD_H
#define MLBRIDGE_LLVM_SIZE_SIZEGUARD_H

#include "Pipeline/RegisterInside.h"

namespace MLBridge {

/// True if -mlbridge-size-guard was given.
bool isSizeGuarded();

/// Registers the guard in place of the inliner, phase ordering and
/// -mlbridge-size. \p Register adds other optimisations to the passes that the
/// guard runs. Does nothing unless an option selects decisions.
void registerSizeGuard(llvm::PassBuilder &PB, RegisterInsideOf Register);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SIZE_SIZEGUARD_H
