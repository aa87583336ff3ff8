//===- SizeSearchPass.h - The pass that searches for size -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Adds the pass `mlbridge-size-search` to opt. Its module is a whole program:
/// \code
///   clang -Oz -Rpass=none -fdebug-info-for-profiling
///         -Xclang -disable-llvm-passes -emit-llvm -c a.cpp -o a.bc
///   llvm-link a.bc b.bc -o program.bc
///   opt -load-pass-plugin=MLBridgeLLVM.so -passes=mlbridge-size-search
///       -mlbridge-size-output=decisions.txt -disable-output program.bc
/// \endcode
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SIZE_SIZESEARCHPASS_H
#define MLBRIDGE_LLVM_SIZE_SIZESEARCHPASS_H

namespace llvm {
class PassBuilder;
} // namespace llvm

namespace MLBridge {

/// Registers the pass with \p PB.
void registerSizeSearch(llvm::PassBuilder &PB);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SIZE_SIZESEARCHPASS_H
