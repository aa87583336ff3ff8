//===- AllocationCost.cpp - The cost of register allocation ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Recognises spills as LLVM's assembly printer does for its comments.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/AllocationCost.h"

#include "llvm/CodeGen/MachineBlockFrequencyInfo.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

#include <tuple>

using namespace llvm;

namespace MLBridge {

AllocationCost
AllocationCost::of(const MachineFunction &MF,
                   const MachineBlockFrequencyInfo &Frequencies) {
  const TargetInstrInfo *TII = MF.getSubtarget().getInstrInfo();
  const double Entry =
      static_cast<double>(Frequencies.getEntryFreq().getFrequency());
  AllocationCost Cost;
  for (const MachineBasicBlock &Block : MF) {
    const double Weight =
        static_cast<double>(Frequencies.getBlockFreq(&Block).getFrequency()) /
        Entry;
    for (const MachineInstr &MI : Block) {
      if (MI.isMetaInstruction())
        continue;
      ++Cost.Instructions;
      const unsigned Spills =
          (MI.getSpillSize(TII) ? 1 : 0) + (MI.getFoldedSpillSize(TII) ? 1 : 0);
      const unsigned Reloads = (MI.getRestoreSize(TII) ? 1 : 0) +
                               (MI.getFoldedRestoreSize(TII) ? 1 : 0);
      const unsigned Copies = MI.isCopy() ? 1 : 0;
      Cost.Spills += Spills;
      Cost.Reloads += Reloads;
      Cost.Copies += Copies;
      Cost.WeightedSpills += Weight * Spills;
      Cost.WeightedReloads += Weight * Reloads;
      Cost.WeightedCopies += Weight * Copies;
    }
  }
  return Cost;
}

bool AllocationCost::isBetterThan(const AllocationCost &Other) const {
  return std::pair(total(), Instructions) <
         std::pair(Other.total(), Other.Instructions);
}

bool AllocationCost::operator==(const AllocationCost &Other) const {
  auto Fields = [](const AllocationCost &C) {
    return std::tie(C.WeightedSpills, C.WeightedReloads, C.WeightedCopies,
                    C.Spills, C.Reloads, C.Copies, C.Instructions);
  };
  return Fields(*this) == Fields(Other);
}

} // namespace MLBridge
