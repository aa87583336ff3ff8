//===- LiveRangeSizePriority.cpp - The largest live range first -*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A plug-in for stock clang and llc that replaces the priority advisor of the
/// greedy register allocator. A live range's priority is its size, which the
/// interactive advisor sends as `li_size`. To use the plug-in, only load it:
///
///     clang-22 -O2 -fplugin=LiveRangeSizePriority.so -c x.c
///
//===----------------------------------------------------------------------===//

#include "llvm/CodeGen/LiveInterval.h"
#include "llvm/CodeGen/RegAllocPriorityAdvisor.h"
#include "llvm/InitializePasses.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"

#include <memory>

using namespace llvm;

namespace {

class Advisor : public RegAllocPriorityAdvisor {
public:
  using RegAllocPriorityAdvisor::RegAllocPriorityAdvisor;

  unsigned getPriority(const LiveInterval &Range) const override {
    return Range.getSize();
  }
};

class Provider : public RegAllocPriorityAdvisorProvider {
public:
  Provider() : RegAllocPriorityAdvisorProvider(AdvisorMode::Release) {}

  std::unique_ptr<RegAllocPriorityAdvisor>
  getAdvisor(const MachineFunction &Function, const RAGreedy &Allocator,
             SlotIndexes &Indexes) override {
    return std::make_unique<Advisor>(Function, Allocator, &Indexes);
  }
};

class Analysis : public RegAllocPriorityAdvisorAnalysisLegacy {
public:
  Analysis() : RegAllocPriorityAdvisorAnalysisLegacy(AdvisorMode::Release) {}

  void getAnalysisUsage(AnalysisUsage &Usage) const override {
    Usage.setPreservesAll();
  }

  bool doInitialization(Module &) override {
    Provider = std::make_unique<::Provider>();
    return false;
  }
};

/// The pass manager creates an analysis through its registry entry, so change
/// this entry.
struct Replacement {
  Replacement() {
    PassRegistry &Registry = *PassRegistry::getPassRegistry();
    initializeRegAllocPriorityAdvisorAnalysisLegacyPass(Registry);
    const PassInfo *Entry =
        Registry.getPassInfo(&RegAllocPriorityAdvisorAnalysisLegacy::ID);
    // LLVM offers no other way to replace an analysis.
    const_cast<PassInfo *>(Entry)->setNormalCtor(
        []() -> Pass * { return new Analysis; });
  }
};

Replacement AtLoad;

} // namespace
