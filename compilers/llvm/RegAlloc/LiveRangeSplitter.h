//===- LiveRangeSplitter.h - Splits a live range in two ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// LiveRangeSplitter splits the live range of a virtual register in two, so
/// that each part can have its own physical register or be spilled alone.
/// LLVM's own splitting (SplitKit) has no public interface.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_LIVERANGESPLITTER_H
#define MLBRIDGE_LLVM_REGALLOC_LIVERANGESPLITTER_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/CodeGen/LiveRangeEdit.h"
#include "llvm/CodeGen/MachineBasicBlock.h"
#include "llvm/CodeGen/Register.h"

#include <optional>

namespace llvm {
class LiveInterval;
class MachineInstr;
class MachineLoop;
class MachineOperand;
class VirtRegAuxInfo;
struct VNInfo;
} // namespace llvm

namespace MLBridge {

struct AllocationContext;

/// A place where a live range can be split: before an instruction that uses it,
/// or around a loop.
struct SplitPoint {
  /// Null if the range is split around Loop.
  llvm::MachineInstr *Use = nullptr;
  const llvm::MachineLoop *Loop = nullptr;
  /// The block of Use, or the header of Loop.
  llvm::MachineBasicBlock *Block = nullptr;
  /// True for a use, and for a loop whose instructions access the range.
  bool HasOperands = true;
};

class LiveRangeSplitter {
public:
  /// \p Weights computes the spill weights of new ranges. \p Delegate is
  /// informed about the registers that a split creates. All arguments must
  /// outlive this object.
  LiveRangeSplitter(const AllocationContext &Context,
                    llvm::VirtRegAuxInfo &Weights,
                    llvm::LiveRangeEdit::Delegate &Delegate)
      : C(Context), Weights(Weights), Delegate(Delegate) {}

  /// Returns the places where \p Range can be split: first the loops, outer
  /// loops before inner loops, and then the uses in the order of the code. A
  /// use directly after the definition of its value is omitted, because a split
  /// there gains nothing.
  llvm::SmallVector<SplitPoint, 8>
  points(const llvm::LiveInterval &Range) const;

  /// Splits the range of \p Reg at \p Point, one of points(). Two new registers
  /// replace \p Reg in all instructions.
  ///
  /// Around a loop, the instructions in the loop use the second register. A
  /// copy in the preheader sets the second register, and copies at the loop's
  /// exits set the first register again. If the loop only reads the value,
  /// there are no copies at the exits, and the first register keeps the value.
  ///
  /// Before a use, a copy sets the second register from the first one:
  /// - If the use dominates uses of the same value in other blocks, or no copy
  ///   back is possible, all dominated uses use the second register.
  /// - Otherwise, all operands up to the end of the block use the second
  ///   register. If the value is live out, it is copied back there.
  ///
  /// Each connected part of the two ranges then gets its own register. Returns
  /// all these registers. If the split is not possible, for example because a
  /// copy would have to follow a terminator, returns none and changes nothing.
  llvm::SmallVector<llvm::Register, 4> split(llvm::Register Reg,
                                             const SplitPoint &Point);

private:
  struct CopyPosition {
    llvm::MachineBasicBlock *Block;
    llvm::MachineBasicBlock::iterator Before;
  };
  struct Change {
    /// The operands that will use the second register.
    llvm::SmallVector<llvm::MachineOperand *, 8> ToSecond;
    /// The places of the copies to the second register, and back to the first.
    CopyPosition CopyToSecond{};
    llvm::SmallVector<CopyPosition, 2> CopiesToFirst;
  };
  std::optional<Change> changeBefore(llvm::Register Reg,
                                     llvm::MachineInstr &Use) const;
  std::optional<Change> changeAround(llvm::Register Reg,
                                     const llvm::MachineLoop &Loop) const;
  void addLoops(const llvm::LiveInterval &Range,
                llvm::SmallVectorImpl<SplitPoint> &Points) const;
  llvm::SmallVector<llvm::MachineOperand *, 8>
  dominatedUses(const llvm::LiveInterval &Range, llvm::MachineInstr &Use) const;
  bool canCopyBack(const llvm::LiveInterval &Range,
                   llvm::MachineInstr &Use) const;
  bool canCopyAtEnd(const llvm::LiveInterval &Range,
                    llvm::MachineBasicBlock &Block) const;
  void copy(const CopyPosition &Position, llvm::Register To,
            llvm::Register From);
  llvm::SmallVector<llvm::Register, 4>
  separate(llvm::ArrayRef<llvm::Register> Parts);

  const AllocationContext &C;
  llvm::VirtRegAuxInfo &Weights;
  llvm::LiveRangeEdit::Delegate &Delegate;
};

/// Marks \p Range as not spillable if an instruction that ends a block defines
/// it, because a store of the value would have no place. After an `asm goto`,
/// LLVM's spiller adds the store only to the fall-through path, which is wrong.
void forbidSpillOfTerminatorValues(const AllocationContext &Context,
                                   llvm::LiveInterval &Range);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_LIVERANGESPLITTER_H
