//===- AllocationContext.cpp - A function and its analyses ----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Gets the analyses from LLVM's legacy pass manager, which runs the code
/// generator.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/AllocationContext.h"

#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/CodeGen/LiveDebugVariables.h"
#include "llvm/CodeGen/LiveIntervals.h"
#include "llvm/CodeGen/LiveRegMatrix.h"
#include "llvm/CodeGen/LiveStacks.h"
#include "llvm/CodeGen/MachineBlockFrequencyInfo.h"
#include "llvm/CodeGen/MachineDominators.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineLoopInfo.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/SlotIndexes.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/CodeGen/VirtRegMap.h"

using namespace llvm;

namespace MLBridge {

AllocationContext::AllocationContext(const MachineFunctionPass &Pass,
                                     MachineFunction &MF)
    : MF(MF), MRI(MF.getRegInfo()), TRI(*MF.getSubtarget().getRegisterInfo()),
      TII(*MF.getSubtarget().getInstrInfo()),
      LIS(Pass.getAnalysis<LiveIntervalsWrapperPass>().getLIS()),
      Indexes(Pass.getAnalysis<SlotIndexesWrapperPass>().getSI()),
      VRM(Pass.getAnalysis<VirtRegMapWrapperLegacy>().getVRM()),
      Matrix(Pass.getAnalysis<LiveRegMatrixWrapperLegacy>().getLRM()),
      Stacks(Pass.getAnalysis<LiveStacksWrapperLegacy>().getLS()),
      DebugVariables(
          Pass.getAnalysis<LiveDebugVariablesWrapperLegacy>().getLDV()),
      Dominators(
          Pass.getAnalysis<MachineDominatorTreeWrapperPass>().getDomTree()),
      Loops(Pass.getAnalysis<MachineLoopInfoWrapperPass>().getLI()),
      Frequencies(
          Pass.getAnalysis<MachineBlockFrequencyInfoWrapperPass>().getMBFI()) {}

template <typename... Analyses> static void addTo(AnalysisUsage &Usage) {
  (Usage.addRequired<Analyses>(), ...);
  (Usage.addPreserved<Analyses>(), ...);
}

void AllocationContext::addRequired(AnalysisUsage &Usage) {
  Usage.setPreservesCFG();
  addTo<AAResultsWrapperPass, LiveIntervalsWrapperPass, SlotIndexesWrapperPass,
        LiveDebugVariablesWrapperLegacy, LiveStacksWrapperLegacy,
        MachineBlockFrequencyInfoWrapperPass, MachineDominatorTreeWrapperPass,
        MachineLoopInfoWrapperPass, VirtRegMapWrapperLegacy,
        LiveRegMatrixWrapperLegacy>(Usage);
}

void forEachRegister(const MachineRegisterInfo &MRI,
                     function_ref<void(Register)> Visit) {
  for (unsigned I = 0, E = MRI.getNumVirtRegs(); I != E; ++I)
    if (Register Reg = Register::index2VirtReg(I); !MRI.reg_nodbg_empty(Reg))
      Visit(Reg);
}

unsigned countRegisters(const MachineRegisterInfo &MRI) {
  unsigned Count = 0;
  forEachRegister(MRI, [&](Register) { ++Count; });
  return Count;
}

} // namespace MLBridge
