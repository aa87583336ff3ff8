//===- LiveRangeSplitter.cpp - Splits a live range in two -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implements splits with two new registers. A copy of a register to itself
/// would not split the register's range, because LLVM joins a definition with
/// the value that the same instruction reads (ConnectedVNInfoEqClasses).
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/LiveRangeSplitter.h"

#include "RegAlloc/AllocationContext.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/CodeGen/CalcSpillWeights.h"
#include "llvm/CodeGen/LiveDebugVariables.h"
#include "llvm/CodeGen/LiveIntervals.h"
#include "llvm/CodeGen/MachineDominators.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/MachineLoopInfo.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/SlotIndexes.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/VirtRegMap.h"

using namespace llvm;

namespace MLBridge {

/// True if \p MI may end a block. LLVM does not count INLINEASM_BR as a
/// terminator.
static bool mayEndBlock(const MachineInstr &MI) {
  return MI.isTerminator() || MI.getOpcode() == TargetOpcode::INLINEASM_BR;
}

void forbidSpillOfTerminatorValues(const AllocationContext &Context,
                                   LiveInterval &Range) {
  if (any_of(Context.MRI.def_instructions(Range.reg()), mayEndBlock))
    Range.markNotSpillable();
}

/// True if a copy can be inserted before \p MI. For example, no copy may be
/// between two terminators.
static bool canInsertBefore(const MachineInstr &MI) {
  if (MI.isPHI() || MI.isPosition() || MI.isBundledWithPred() ||
      MI.isDebugInstr())
    return false;
  return !MI.isTerminator() ||
         MI.getParent()->getFirstTerminator() == MI.getIterator();
}

/// Adds the loops with a preheader from which \p Range is live into the loop.
void LiveRangeSplitter::addLoops(const LiveInterval &Range,
                                 SmallVectorImpl<SplitPoint> &Points) const {
  SmallPtrSet<const MachineLoop *, 8> WithOperands;
  for (const MachineInstr &MI : C.MRI.reg_nodbg_instructions(Range.reg()))
    for (const MachineLoop *L = C.Loops.getLoopFor(MI.getParent());
         L && WithOperands.insert(L).second;)
      L = L->getParentLoop();
  for (const MachineLoop *L : C.Loops.getLoopsInPreorder()) {
    MachineBasicBlock *Preheader = L->getLoopPreheader();
    if (Preheader && C.LIS.isLiveOutOfMBB(Range, Preheader) &&
        C.LIS.isLiveInToMBB(Range, L->getHeader()))
      Points.push_back({nullptr, L, L->getHeader(), WithOperands.contains(L)});
  }
}

SmallVector<SplitPoint, 8>
LiveRangeSplitter::points(const LiveInterval &Range) const {
  SmallVector<SplitPoint, 8> Result;
  if (Range.empty() || Range.isZeroLength(&C.Indexes))
    return Result;
  addLoops(Range, Result);
  const std::size_t FirstUse = Result.size();
  SmallPtrSet<MachineInstr *, 16> Seen;
  for (MachineInstr &MI : C.MRI.use_nodbg_instructions(Range.reg())) {
    if (!Seen.insert(&MI).second || !canInsertBefore(MI))
      continue;
    const SlotIndex Index = C.Indexes.getInstructionIndex(MI);
    const VNInfo *Value = Range.getVNInfoBefore(Index.getRegSlot(true));
    // Skip undefined values, at which the range is not live.
    if (!Range.liveAt(Index.getBaseIndex()) || !Value)
      continue;
    if (!Value->isPHIDef() && SlotIndex::isEarlierInstr(Value->def, Index) &&
        C.Indexes.getNextNonNullIndex(Value->def).getBaseIndex() ==
            Index.getBaseIndex())
      continue;
    Result.push_back({&MI, nullptr, MI.getParent()});
  }
  std::sort(Result.begin() + FirstUse, Result.end(),
            [&](const SplitPoint &A, const SplitPoint &B) {
              return C.Indexes.getInstructionIndex(*A.Use) <
                     C.Indexes.getInstructionIndex(*B.Use);
            });
  return Result;
}

/// Returns the operands that use the same value of \p Range as \p Use, in
/// \p Use and in instructions that it dominates. Tied operands are omitted,
/// because the tied definition would keep the old register.
SmallVector<MachineOperand *, 8>
LiveRangeSplitter::dominatedUses(const LiveInterval &Range,
                                 MachineInstr &Use) const {
  const SlotIndex UseIndex = C.Indexes.getInstructionIndex(Use);
  const VNInfo *Value = Range.getVNInfoBefore(UseIndex.getRegSlot(true));
  SmallVector<MachineOperand *, 8> Result;
  for (MachineOperand &Operand : C.MRI.use_nodbg_operands(Range.reg())) {
    MachineInstr &MI = *Operand.getParent();
    if (Operand.isUndef() || Operand.isDef() || Operand.isTied() ||
        MI.isBundled())
      continue;
    const SlotIndex Index = C.Indexes.getInstructionIndex(MI);
    if (Range.getVNInfoBefore(Index.getRegSlot(true)) != Value)
      continue;
    const bool Dominated =
        MI.getParent() == Use.getParent()
            ? !SlotIndex::isEarlierInstr(Index, UseIndex)
            : C.Dominators.dominates(Use.getParent(), MI.getParent());
    if (Dominated)
      Result.push_back(&Operand);
  }
  return Result;
}

/// True if a copy before the terminators of \p Block can read \p Range and
/// write a register that is live in the successors. \p Range must be live out
/// of \p Block.
bool LiveRangeSplitter::canCopyAtEnd(const LiveInterval &Range,
                                     MachineBasicBlock &Block) const {
  const auto Terminator = Block.getFirstTerminator();
  const SlotIndex End = Terminator == Block.end()
                            ? C.Indexes.getMBBEndIdx(&Block).getPrevSlot()
                            : C.Indexes.getInstructionIndex(*Terminator);
  // If the range is not live at End, a terminator defines the value.
  return Range.liveAt(End) &&
         none_of(Block,
                 [](const MachineInstr &MI) {
                   return MI.getOpcode() == TargetOpcode::INLINEASM_BR;
                 }) &&
         none_of(Block.successors(), [](const MachineBasicBlock *Successor) {
           return Successor->isEHPad() ||
                  Successor->isInlineAsmBrIndirectTarget();
         });
}

/// True if the second register can be used from \p Use to the end of its block.
/// If the value is live out, a copy back must be possible there.
bool LiveRangeSplitter::canCopyBack(const LiveInterval &Range,
                                    MachineInstr &Use) const {
  MachineBasicBlock &Block = *Use.getParent();
  if (!C.LIS.isLiveOutOfMBB(Range, &Block))
    return true;
  const auto Terminator = Block.getFirstTerminator();
  if (Terminator != Block.end() &&
      !SlotIndex::isEarlierInstr(C.Indexes.getInstructionIndex(Use),
                                 C.Indexes.getInstructionIndex(*Terminator)))
    return false;
  return canCopyAtEnd(Range, Block);
}

std::optional<LiveRangeSplitter::Change>
LiveRangeSplitter::changeBefore(Register Reg, MachineInstr &Use) const {
  const LiveInterval &Range = C.LIS.getInterval(Reg);
  MachineBasicBlock &Block = *Use.getParent();
  const bool CopyBack = C.LIS.isLiveOutOfMBB(Range, &Block);
  const bool CanCopyBack = canCopyBack(Range, Use);
  Change Result;
  Result.CopyToSecond = {&Block, Use.getIterator()};
  Result.ToSecond = dominatedUses(Range, Use);
  const bool ByValue =
      !Result.ToSecond.empty() &&
      (!CanCopyBack ||
       any_of(Result.ToSecond, [&](const MachineOperand *Operand) {
         return Operand->getParent()->getParent() != &Block;
       }));
  if (ByValue)
    return Result;
  if (!CanCopyBack)
    return std::nullopt;
  Result.ToSecond.clear();
  const MachineBasicBlock::iterator Begin(Use);
  const MachineBasicBlock::iterator End =
      CopyBack ? Block.getFirstTerminator() : Block.end();
  for (MachineInstr &MI : make_range(Begin, End))
    for (MachineOperand &Operand : MI.operands())
      if (Operand.isReg() && Operand.getReg() == Reg && !Operand.isDebug())
        Result.ToSecond.push_back(&Operand);
  if (CopyBack)
    Result.CopiesToFirst.push_back({&Block, Block.getFirstTerminator()});
  return Result;
}

std::optional<LiveRangeSplitter::Change>
LiveRangeSplitter::changeAround(Register Reg, const MachineLoop &Loop) const {
  const LiveInterval &Range = C.LIS.getInterval(Reg);
  MachineBasicBlock *Preheader = Loop.getLoopPreheader();
  if (!Preheader || !canCopyAtEnd(Range, *Preheader))
    return std::nullopt;
  Change Result;
  Result.CopyToSecond = {Preheader, Preheader->getFirstTerminator()};
  bool HasDefinitions = false;
  for (MachineOperand &Operand : C.MRI.reg_nodbg_operands(Reg))
    if (Loop.contains(Operand.getParent())) {
      Result.ToSecond.push_back(&Operand);
      HasDefinitions |= Operand.isDef();
    }
  // Copy nothing back if the loop only reads the value, because the first
  // register keeps it.
  if (!HasDefinitions && !Result.ToSecond.empty())
    return Result;
  SmallVector<MachineBasicBlock *, 4> Exits;
  Loop.getUniqueExitBlocks(Exits);
  for (MachineBasicBlock *Exit : Exits) {
    if (!C.LIS.isLiveInToMBB(Range, Exit))
      continue;
    if (Exit->isEHPad() || Exit->isInlineAsmBrIndirectTarget() ||
        !all_of(Exit->predecessors(), [&](const MachineBasicBlock *Before) {
          return Loop.contains(Before);
        }))
      return std::nullopt;
    Result.CopiesToFirst.push_back(
        {Exit, Exit->SkipPHIsLabelsAndDebug(Exit->begin(), Reg)});
  }
  if (Result.ToSecond.empty() && Result.CopiesToFirst.empty())
    return std::nullopt;
  return Result;
}

void LiveRangeSplitter::copy(const CopyPosition &Position, Register To,
                             Register From) {
  MachineInstr *Copy = BuildMI(*Position.Block, Position.Before, DebugLoc(),
                               C.TII.get(TargetOpcode::COPY), To)
                           .addReg(From);
  C.LIS.InsertMachineInstrInMaps(*Copy);
}

SmallVector<Register, 4> LiveRangeSplitter::split(Register Reg,
                                                  const SplitPoint &Point) {
  const std::optional<Change> Changes = Point.Use
                                            ? changeBefore(Reg, *Point.Use)
                                            : changeAround(Reg, *Point.Loop);
  if (!Changes)
    return {};

  // This object records in VirtRegMap that the new registers come from Reg.
  SmallVector<Register, 4> Created;
  LiveRangeEdit Edit(&C.LIS.getInterval(Reg), Created, C.MF, C.LIS, &C.VRM,
                     &Delegate);
  const Register First = Edit.createFrom(Reg), Second = Edit.createFrom(Reg);
  for (Register New : {First, Second})
    if (C.LIS.hasInterval(New))
      C.LIS.removeInterval(New);

  for (MachineOperand *Operand : Changes->ToSecond)
    Operand->setReg(Second);
  for (MachineOperand &Operand : make_early_inc_range(C.MRI.reg_operands(Reg)))
    if (!Operand.isDebug())
      Operand.setReg(First);
  copy(Changes->CopyToSecond, Second, First);
  for (const CopyPosition &Position : Changes->CopiesToFirst)
    copy(Position, First, Second);

  const Register Original = C.VRM.getOriginal(Reg);
  SmallVector<Register, 4> Parts = separate({First, Second});
  for (Register Part : Parts)
    C.VRM.setIsSplitFromReg(Part, Original);
  for (Register Part : Parts) {
    LiveInterval &New = C.LIS.getInterval(Part);
    Weights.calculateSpillWeightAndHint(New);
    forbidSpillOfTerminatorValues(C, New);
  }
  C.DebugVariables.splitRegister(Reg, Parts, C.LIS);
  // Keep an original range, because the spiller reads its values.
  if (Original != Reg)
    C.LIS.removeInterval(Reg);
  return Parts;
}

/// Computes the ranges of the registers \p Parts and gives each connected part
/// of a range a register of its own. Returns all registers that are used.
SmallVector<Register, 4> LiveRangeSplitter::separate(ArrayRef<Register> Parts) {
  SmallVector<Register, 4> Result;
  for (Register Part : Parts) {
    if (C.MRI.reg_nodbg_empty(Part))
      continue;
    for (MachineOperand &Operand : C.MRI.use_operands(Part))
      Operand.setIsKill(false);
    SmallVector<LiveInterval *, 4> Components;
    C.LIS.splitSeparateComponents(C.LIS.createAndComputeVirtRegInterval(Part),
                                  Components);
    Result.push_back(Part);
    for (const LiveInterval *Component : Components)
      if (!is_contained(Result, Component->reg()))
        Result.push_back(Component->reg());
  }
  C.VRM.grow();
  return Result;
}

} // namespace MLBridge
