//===- AccessPattern.h - How a loop accesses memory -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Describes how the addresses of loads and stores change in a loop.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_LOOPDISTRIBUTION_ACCESSPATTERN_H
#define MLBRIDGE_LLVM_LOOPDISTRIBUTION_ACCESSPATTERN_H

#include <cstdint>

namespace llvm {
class Instruction;
class Loop;
class ScalarEvolution;
} // namespace llvm

namespace MLBridge {

/// The distance between the addresses of an access in consecutive iterations.
enum class Stride : std::uint8_t {
  Consecutive, ///< The size of the element, upwards or downwards.
  Strided,     ///< Another constant distance.
  Invariant,   ///< All iterations access the same address.
  Irregular,   ///< None of these.
};

/// Returns the stride of \p Access, a load or a store in \p L.
Stride strideOf(const llvm::Instruction &Access, const llvm::Loop &L,
                llvm::ScalarEvolution &SE);

/// Returns the number of bytes that \p Access, a load or a store, accesses, or
/// 0 for scalable vectors.
std::uint64_t accessedBytes(const llvm::Instruction &Access);

/// True if any two iterations of \p L access different bytes through \p Access.
bool hasNewAddressInEachIteration(const llvm::Instruction &Access,
                                  const llvm::Loop &L,
                                  llvm::ScalarEvolution &SE);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_ACCESSPATTERN_H
