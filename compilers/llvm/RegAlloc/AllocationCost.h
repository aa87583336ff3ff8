//===- AllocationCost.h - The cost of register allocation -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AllocationCost measures the code that register allocation has added to a
/// function. The measure is the same for all allocators.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_ALLOCATIONCOST_H
#define MLBRIDGE_LLVM_REGALLOC_ALLOCATIONCOST_H

namespace llvm {
class MachineBlockFrequencyInfo;
class MachineFunction;
} // namespace llvm

namespace MLBridge {

/// Counts of instructions in a function after register allocation. In a
/// weighted sum, an instruction's weight is LLVM's estimate of how often its
/// block runs in one run of the function. All members are plain, so that a
/// process can send an object to another process.
struct AllocationCost {
  double WeightedSpills = 0;
  double WeightedReloads = 0;
  double WeightedCopies = 0;
  unsigned Spills = 0;
  unsigned Reloads = 0;
  unsigned Copies = 0;
  unsigned Instructions = 0;

  /// Measures \p MF. An instruction that accesses a spilled register in memory
  /// also counts as a spill or a reload.
  static AllocationCost of(const llvm::MachineFunction &MF,
                           const llvm::MachineBlockFrequencyInfo &Frequencies);

  /// The measure by which allocators are compared.
  double total() const {
    return WeightedSpills + WeightedReloads + WeightedCopies;
  }
  /// Compares the totals and, if they are equal, the numbers of instructions.
  /// The sizes in bytes are not known yet, because LLVM chooses the encoding of
  /// an x86 instruction when it writes the object.
  bool isBetterThan(const AllocationCost &Other) const;
  bool operator==(const AllocationCost &Other) const;
  bool operator!=(const AllocationCost &Other) const {
    return !(*this == Other);
  }
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ALLOCATIONCOST_H
