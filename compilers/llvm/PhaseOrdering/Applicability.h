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

namespace llvm {
class Module;
} // namespace llvm

namespace MLBridge {

/// Whether most of the code that \p M will be, by instructions, is to be small:
/// of functions marked `optsize` or `minsize`.
bool isMostlyForSize(const llvm::Module &M);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_APPLICABILITY_H
