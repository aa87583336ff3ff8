//===- AccessPattern.h - How a loop walks through memory ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The addresses of loads and stores in a loop.
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

/// The distance between the addresses of two iterations.
enum class Stride : std::uint8_t {
  Consecutive, ///< The size of the element, in either direction.
  Strided,     ///< Another distance that does not change in the loop.
  Invariant,   ///< All iterations access one address.
  Irregular,   ///< None of these.
};

/// Returns the stride of \p Access, a load or a store in \p L.
Stride strideOf(const llvm::Instruction &Access, const llvm::Loop &L,
                llvm::ScalarEvolution &SE);

/// Returns the number of bytes that \p Access, a load or a store, accesses, or
/// 0 for scalable vectors.
std::uint64_t accessedBytes(const llvm::Instruction &Access);

/// True if the bytes that \p Access accesses differ between any two iterations
/// of \p L.
bool hasNewAddressInEachIteration(const llvm::Instruction &Access,
                                  const llvm::Loop &L,
                                  llvm::ScalarEvolution &SE);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_LOOPDISTRIBUTION_ACCESSPATTERN_H
