//===- HintsAndWeights.cpp - Greedy's hints and weights -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads and writes the hints of MachineRegisterInfo.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/HintsAndWeights.h"

#include "RegAlloc/AllocationContext.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/CodeGen/LiveIntervals.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"

using namespace llvm;

namespace MLBridge {

HintsAndWeights::HintsAndWeights(const AllocationContext &Context)
    : C(Context) {
  C.forEachRegister([&](Register Reg) {
    Saved Now{Reg, C.LIS.getInterval(Reg).weight(), 0, {}};
    if (const auto *Hints = C.MRI.getRegAllocationHints(Reg)) {
      Now.Kind = Hints->first;
      Now.Hints.assign(Hints->second.begin(), Hints->second.end());
    }
    Registers.push_back(std::move(Now));
  });
}

void HintsAndWeights::restore() const {
  for (const Saved &Before : Registers) {
    C.LIS.getInterval(Before.Reg).setWeight(Before.Weight);
    if (!C.MRI.getRegAllocationHints(Before.Reg))
      continue;
    // Remove all hints with two calls, because MachineRegisterInfo has no
    // function for this.
    C.MRI.setSimpleHint(Before.Reg, Register());
    C.MRI.clearSimpleHint(Before.Reg);
    if (Before.Kind == 0) {
      for (Register Hint : Before.Hints)
        C.MRI.addRegAllocationHint(Before.Reg, Hint);
      continue;
    }
    const Register First =
        Before.Hints.empty() ? Register() : Before.Hints.front();
    C.MRI.setRegAllocationHint(Before.Reg, Before.Kind, First);
    for (Register Hint : drop_begin(Before.Hints, Before.Hints.empty() ? 0 : 1))
      C.MRI.addRegAllocationHint(Before.Reg, Hint);
  }
}

} // namespace MLBridge
