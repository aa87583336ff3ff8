//===- LiveRangeSplitter.h - Splits a live range at a use -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// LiveRangeSplitter splits the live range of a virtual register in two, so
/// that each part can have its own physical register, or only one is spilled.
/// LLVM's own splitting (SplitKit) has no public interface.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_LIVERANGESPLITTER_H
#define MLBRIDGE_LLVM_REGALLOC_LIVERANGESPLITTER_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/CodeGen/LiveRangeEdit.h"
#include "llvm/CodeGen/Register.h"

namespace llvm {
class LiveInterval;
class MachineBasicBlock;
class MachineInstr;
class MachineOperand;
class VirtRegAuxInfo;
struct VNInfo;
} // namespace llvm

namespace MLBridge {

struct AllocationContext;

class LiveRangeSplitter {
public:
  /// \p Weights computes the spill weights of new ranges. \p Delegate is told
  /// of the registers that a split creates. All arguments must outlive this
  /// object.
  LiveRangeSplitter(const AllocationContext &Context,
                    llvm::VirtRegAuxInfo &Weights,
                    llvm::LiveRangeEdit::Delegate &Delegate)
      : C(Context), Weights(Weights), Delegate(Delegate) {}

  /// Returns the instructions before which \p Range can be split, in the order
  /// of the code. An instruction directly behind the definition of its value is
  /// left out, because a split there gains nothing.
  llvm::SmallVector<llvm::MachineInstr *, 8>
  uses(const llvm::LiveInterval &Range) const;

  /// Splits the range of \p Reg before \p Use, one of uses(). Two new registers
  /// replace \p Reg in all instructions. A copy from the first to the second
  /// precedes \p Use:
  /// - If \p Use dominates other uses of the same value, these use the second
  ///   register.
  /// - Otherwise, the second register is used up to the end of the block, where
  ///   it is copied back if the value is live out.
  ///
  /// Each connected part of the two ranges then becomes a register of its own.
  /// Returns all these registers, or none if the split is not possible, for
  /// example because a copy would have to stand behind a terminator. The
  /// function has then changed nothing.
  llvm::SmallVector<llvm::Register, 4> split(llvm::Register Reg,
                                             llvm::MachineInstr &Use);

private:
  llvm::SmallVector<llvm::MachineOperand *, 8>
  dominatedUses(const llvm::LiveInterval &Range, llvm::MachineInstr &Use) const;
  bool canCopyBack(const llvm::LiveInterval &Range,
                   llvm::MachineInstr &Use) const;
  void copyBefore(llvm::MachineBasicBlock &Block,
                  llvm::MachineBasicBlock::iterator Position, llvm::Register To,
                  llvm::Register From);
  llvm::SmallVector<llvm::Register, 4>
  separate(llvm::ArrayRef<llvm::Register> Parts);

  const AllocationContext &C;
  llvm::VirtRegAuxInfo &Weights;
  llvm::LiveRangeEdit::Delegate &Delegate;
};

/// Forbids to spill \p Range if an instruction that ends a block defines it. A
/// store of the value would have no place. LLVM's spiller puts the store behind
/// an `asm goto` on the fall-through path only, which is wrong on the others.
void forbidSpillOfTerminatorValues(const AllocationContext &Context,
                                   llvm::LiveInterval &Range);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_LIVERANGESPLITTER_H
