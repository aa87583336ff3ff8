//===- AdvisorFeatures.cpp - Features for greedy's advisors ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Computes features with the names, types, shapes and scales of LLVM's
/// channels -regalloc-evict-interactive-channel-base and
/// -regalloc-priority-interactive-channel-base.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/AdvisorFeatures.h"

#include "RegAlloc/AllocationContext.h"
#include "Support/ModelRunnerAdapter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/CodeGen/CalcSpillWeights.h"
#include "llvm/CodeGen/LiveIntervals.h"
#include "llvm/CodeGen/MachineBlockFrequencyInfo.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineLoopInfo.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/RegAllocPriorityAdvisor.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/CodeGen/VirtRegMap.h"

using namespace llvm;

namespace MLBridge {

VisibleStage stageOf(const LiveInterval &Range,
                     const RegAllocPriorityAdvisor &Default) {
  // Ranges that the spiller has created cannot be spilled again, and greedy has
  // finished with them.
  if (!Range.isSpillable())
    return VisibleStage::Done;
  // Only ranges that wait for a split have a priority without this bit.
  constexpr unsigned HighestBit = 1U << 31;
  return (Default.getPriority(Range) & HighestBit) == 0 ? VisibleStage::Split
                                                        : VisibleStage::Assign;
}

const std::vector<llvm::TensorSpec> &PriorityFeatures::specs() {
  static const std::vector<llvm::TensorSpec> Specs{
      llvm::TensorSpec::createSpec<std::int64_t>("li_size", {1}),
      llvm::TensorSpec::createSpec<std::int64_t>("stage", {1}),
      llvm::TensorSpec::createSpec<float>("weight", {1})};
  return Specs;
}

const llvm::TensorSpec &PriorityFeatures::advice() {
  static const llvm::TensorSpec Spec =
      llvm::TensorSpec::createSpec<float>("priority", {1});
  return Spec;
}

void PriorityFeatures::set(const LiveInterval &Range, VisibleStage Stage,
                           ModelRunnerAdapter &Into) {
  *Into.getTensor<std::int64_t>(0) = Range.getSize();
  *Into.getTensor<std::int64_t>(1) = std::int64_t(Stage);
  *Into.getTensor<float>(2) = Range.weight();
}

const std::array<EvictionFeatures::Feature,
                 EvictionFeatures::NumIntegers + EvictionFeatures::NumFloats>
    EvictionFeatures::Features{{
        {"mask", Mask},
        {"is_free", IsFree},
        {"nr_urgent", Urgent},
        {"nr_broken_hints", BrokenHints},
        {"is_hint", IsHint},
        {"is_local", IsLocal},
        {"nr_rematerializable", Rematerializable},
        {"nr_defs_and_uses", DefsAndUses},
        {"weighed_reads_by_max", Reads},
        {"weighed_writes_by_max", Writes},
        {"weighed_read_writes_by_max", ReadWrites},
        {"weighed_indvars_by_max", IndVars},
        {"hint_weights_by_max", Hints},
        {"start_bb_freq_by_max", StartFrequency},
        {"end_bb_freq_by_max", EndFrequency},
        {"hottest_bb_freq_by_max", HottestFrequency},
        {"liverange_size", Size},
        {"use_def_density", Density},
        {"max_stage", MaxStage},
        {"min_stage", MinStage},
    }};

const std::vector<llvm::TensorSpec> &EvictionFeatures::specs() {
  static const std::vector<llvm::TensorSpec> Specs = [] {
    const std::vector<std::int64_t> Shape{1, Positions};
    std::vector<llvm::TensorSpec> Result;
    Result.reserve(Features.size() + 1);
    for (const Feature &F : Features)
      Result.push_back(
          F.IsInteger
              ? llvm::TensorSpec::createSpec<std::int64_t>(F.Name, Shape)
              : llvm::TensorSpec::createSpec<float>(F.Name, Shape));
    Result.push_back(llvm::TensorSpec::createSpec<float>("progress", {1}));
    return Result;
  }();
  return Specs;
}

const llvm::TensorSpec &EvictionFeatures::advice() {
  static const llvm::TensorSpec Spec =
      llvm::TensorSpec::createSpec<std::int64_t>("index_to_evict", {1});
  return Spec;
}

EvictionFeatures::EvictionFeatures(const MachineFunction &MF,
                                   const LiveIntervals &LIS,
                                   const VirtRegMap &VRM,
                                   const MachineBlockFrequencyInfo &Frequencies,
                                   const MachineLoopInfo &Loops)
    : MF(MF), LIS(LIS), VRM(VRM), Frequencies(Frequencies), Loops(Loops),
      InitialRanges(float(countRegisters(MF.getRegInfo()))) {}

void EvictionFeatures::begin() {
  Integers = {};
  Floats = {};
}

const EvictionFeatures::Range &
EvictionFeatures::of(const LiveInterval &Interval) {
  const Register Reg = Interval.reg();
  const auto [Entry, IsNew] = Known.try_emplace(Reg);
  Range &Found = Entry->second;
  if (!IsNew)
    return Found;
  const MachineRegisterInfo &MRI = MF.getRegInfo();
  const TargetSubtargetInfo &Target = MF.getSubtarget();
  SmallPtrSet<const MachineInstr *, 8> Seen;
  for (const MachineInstr &MI : MRI.reg_nodbg_instructions(Reg)) {
    // Count each visit, as LLVM does. An instruction may be visited repeatedly.
    ++Found.DefsAndUses;
    if (!Seen.insert(&MI).second || MI.isIdentityCopy() || MI.isImplicitDef())
      continue;
    const MachineBasicBlock *Block = MI.getParent();
    const float Frequency = Frequencies.getBlockFreqRelativeToEntryBlock(Block);
    Found.Hottest = std::max(Found.Hottest, Frequency);
    const auto [Reads, Writes] = MI.readsWritesVirtualRegister(Reg);
    if (Reads && Writes)
      Found.ReadWrites += Frequency;
    else if (Reads)
      Found.Reads += Frequency;
    else if (Writes)
      Found.Writes += Frequency;
    const MachineLoop *Loop = Loops.getLoopFor(Block);
    if (Writes && Loop && Loop->isLoopExiting(Block) &&
        LIS.isLiveOutOfMBB(Interval, Block))
      Found.IndVars += Frequency;
    if (MI.isCopy() &&
        VirtRegAuxInfo::copyHint(&MI, Reg, *Target.getRegisterInfo(), MRI))
      Found.Hints += Frequency;
  }
  Found.IsRematerializable = VirtRegAuxInfo::isRematerializable(
      Interval, LIS, VRM, MRI, *Target.getInstrInfo());
  return Found;
}

float EvictionFeatures::frequencyAt(SlotIndex Index) const {
  return Frequencies.getBlockFreqRelativeToEntryBlock(
      LIS.getMBBFromIndex(Index));
}

/// Sets the features that depend on the ranges' first start and last end.
void EvictionFeatures::setExtent(std::size_t Position, const Occupants &Of) {
  SlotIndexes &Indexes = *LIS.getSlotIndexes();
  SlotIndex Begin = Indexes.getLastIndex(), End = Indexes.getZeroIndex();
  for (const LiveInterval *Interval : Of.Ranges) {
    Begin = std::min(Begin, Interval->beginIndex());
    End = std::max(End, Interval->endIndex());
  }
  if (End >= Indexes.getLastIndex())
    End = Indexes.getLastIndex().getPrevIndex();
  Floats[StartFrequency][Position] = frequencyAt(Begin);
  Floats[EndFrequency][Position] = frequencyAt(End);
  Floats[Size][Position] = float(Begin.distance(End));
}

void EvictionFeatures::set(std::size_t Position, const Occupants &Of) {
  Integers[Mask][Position] = 1;
  Integers[IsFree][Position] = Of.Ranges.empty();
  Integers[IsHint][Position] = Of.IsHint;
  Integers[IsLocal][Position] = Of.Local;
  if (Of.Ranges.empty())
    return;
  Integers[MaxStage][Position] = std::int64_t(Of.Highest);
  Integers[MinStage][Position] = std::int64_t(Of.Lowest);
  // Sum in double precision, as LLVM does.
  Range Sum;
  std::int64_t Broken = 0, Remat = 0;
  float Weight = 0;
  for (const LiveInterval *Interval : Of.Ranges) {
    const Range &One = of(*Interval);
    Sum.Reads += One.Reads;
    Sum.Writes += One.Writes;
    Sum.ReadWrites += One.ReadWrites;
    Sum.IndVars += One.IndVars;
    Sum.Hints += One.Hints;
    Sum.DefsAndUses += One.DefsAndUses;
    Sum.Hottest = std::max(Sum.Hottest, One.Hottest);
    Remat += One.IsRematerializable;
    Broken += VRM.hasPreferredPhys(Interval->reg());
    Weight = std::max(Weight, Interval->weight());
  }
  Floats[BrokenHints][Position] = float(Broken);
  Floats[Rematerializable][Position] = float(Remat);
  Floats[DefsAndUses][Position] = float(Sum.DefsAndUses);
  Floats[Reads][Position] = float(Sum.Reads);
  Floats[Writes][Position] = float(Sum.Writes);
  Floats[ReadWrites][Position] = float(Sum.ReadWrites);
  Floats[IndVars][Position] = float(Sum.IndVars);
  Floats[Hints][Position] = float(Sum.Hints);
  Floats[HottestFrequency][Position] = Sum.Hottest;
  Floats[Density][Position] = Weight;
  setExtent(Position, Of);
}

void EvictionFeatures::finish(ModelRunnerAdapter &Into) {
  for (auto &Row : Floats) {
    const float Largest = *max_element(Row);
    if (Largest > 0)
      for (float &Value : Row)
        Value /= Largest;
  }
  for (const auto &[I, F] : enumerate(Features))
    if (F.IsInteger)
      llvm::copy(Integers[F.Index], Into.getTensor<std::int64_t>(I));
    else
      llvm::copy(Floats[F.Index], Into.getTensor<float>(I));
  // Count the ranges in greedy's queue. The range that needs a register is no
  // longer in the queue.
  unsigned Queued = 0;
  forEachRegister(MF.getRegInfo(),
                  [&](Register Reg) { Queued += !VRM.hasPhys(Reg); });
  --Queued;
  *Into.getTensor<float>(Features.size()) = float(Queued) / InitialRanges;
}

} // namespace MLBridge
