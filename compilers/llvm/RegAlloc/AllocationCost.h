//===- AllocationCost.h - What register allocation cost ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AllocationCost measures the code that register allocation has added to a
/// function. It treats all allocators alike.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_ALLOCATIONCOST_H
#define MLBRIDGE_LLVM_REGALLOC_ALLOCATIONCOST_H

namespace llvm {
class MachineBlockFrequencyInfo;
class MachineFunction;
} // namespace llvm

namespace MLBridge {

/// Counts of instructions in a function after its virtual registers have been
/// replaced. In a weighted sum, an instruction counts as often as its block
/// runs for each run of the function, by LLVM's estimate. All members are
/// plain, so that a process can send the value to another.
struct AllocationCost {
  double WeightedSpills = 0;
  double WeightedReloads = 0;
  double WeightedCopies = 0;
  unsigned Spills = 0;
  unsigned Reloads = 0;
  unsigned Copies = 0;
  unsigned Instructions = 0;

  /// Measures \p MF. Instructions that only access memory because a register
  /// was spilled ("folded" ones) count as spills and reloads.
  static AllocationCost of(const llvm::MachineFunction &MF,
                           const llvm::MachineBlockFrequencyInfo &Frequencies);

  /// The measure that allocators are compared by.
  double total() const {
    return WeightedSpills + WeightedReloads + WeightedCopies;
  }
  /// Compares the totals and, if they are equal, the numbers of instructions.
  bool isBetterThan(const AllocationCost &Other) const;
  bool operator==(const AllocationCost &Other) const;
  bool operator!=(const AllocationCost &Other) const {
    return !(*this == Other);
  }
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ALLOCATIONCOST_H
