//===- LoopDistributionPass.h - Learned decisions about loops ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The pass that distributes innermost loops and sets their factors. With
/// `-mlbridge-loop-distribution=SPEC` or `-mlbridge-loop-factors=SPEC`, it runs
/// at -O2 and -O3 before vectorization:
/// \code
///   clang -O3 -fpass-plugin=X.so -mllvm -mlbridge-loop-distribution=SPEC
///   opt -load-pass-plugin=X.so -mlbridge-loop-distribution=SPEC
///       -passes=mlbridge-loop-distribution
///   opt -load-pass-plugin=X.so -passes='print<mlbridge-loop-distribution>'
/// \endcode
/// The last command prints a line of JSON for each loop: its nodes and edges,
/// its legal distributions, and its legal factors.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPDISTRIBUTIONPASS_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPDISTRIBUTIONPASS_H

namespace llvm {
class PassBuilder;
} // namespace llvm

namespace MLBridge {

/// Registers the passes with \p PB, the pass builder of a compiler or of an
/// episode of phase ordering. The passes of one pass builder share a policy.
void registerLoopDistribution(llvm::PassBuilder &PB);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_LOOPDISTRIBUTIONPASS_H
