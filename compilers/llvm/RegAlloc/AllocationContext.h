//===- AllocationContext.h - A function and its analyses --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AllocationContext refers to a machine function and to the analyses that
/// register allocation reads and updates.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_ALLOCATIONCONTEXT_H
#define MLBRIDGE_LLVM_REGALLOC_ALLOCATIONCONTEXT_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/CodeGen/Register.h"

namespace llvm {
class AnalysisUsage;
class LiveDebugVariables;
class LiveIntervals;
class LiveRegMatrix;
class LiveStacks;
class MachineBlockFrequencyInfo;
class MachineDominatorTree;
class MachineFunction;
class MachineFunctionPass;
class MachineLoopInfo;
class MachineRegisterInfo;
class SlotIndexes;
class TargetInstrInfo;
class TargetRegisterInfo;
class VirtRegMap;
} // namespace llvm

namespace MLBridge {

/// Calls \p Visit for each virtual register that instructions use, in ascending
/// order. \p Visit may create registers, which are not visited.
void forEachRegister(const llvm::MachineRegisterInfo &MRI,
                     llvm::function_ref<void(llvm::Register)> Visit);
/// Returns the number of virtual registers that instructions use.
unsigned countRegisters(const llvm::MachineRegisterInfo &MRI);

/// All references must outlive this object.
struct AllocationContext {
  /// Gets the analyses of \p MF, which \p Pass has required with addRequired().
  AllocationContext(const llvm::MachineFunctionPass &Pass,
                    llvm::MachineFunction &MF);

  /// Declares in \p Usage that all analyses are required and preserved. LLVM's
  /// greedy allocator, which runs later, therefore sees the assignments.
  static void addRequired(llvm::AnalysisUsage &Usage);

  void forEachRegister(llvm::function_ref<void(llvm::Register)> Visit) const {
    MLBridge::forEachRegister(MRI, Visit);
  }

  llvm::MachineFunction &MF;
  llvm::MachineRegisterInfo &MRI;
  const llvm::TargetRegisterInfo &TRI;
  const llvm::TargetInstrInfo &TII;
  llvm::LiveIntervals &LIS;
  llvm::SlotIndexes &Indexes;
  llvm::VirtRegMap &VRM;
  llvm::LiveRegMatrix &Matrix;
  llvm::LiveStacks &Stacks;
  llvm::LiveDebugVariables &DebugVariables;
  llvm::MachineDominatorTree &Dominators;
  llvm::MachineLoopInfo &Loops;
  llvm::MachineBlockFrequencyInfo &Frequencies;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ALLOCATIONCONTEXT_H
