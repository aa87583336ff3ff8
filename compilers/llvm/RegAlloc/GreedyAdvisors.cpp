//===- GreedyAdvisors.cpp - Replaces greedy's advisors --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// LLVM's pass manager creates the advisors' analyses with a function in their
/// PassInfo. When the plug-in is loaded, it replaces this function. The new
/// function creates LLVM's analysis unless an option may replace the advisors.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/GreedyAdvisors.h"

#include "RegAlloc/AdvisorModel.h"
#include "RegAlloc/RegAllocOptions.h"

#include "llvm/CodeGen/LiveIntervals.h"
#include "llvm/CodeGen/LiveRegMatrix.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/RegAllocEvictionAdvisor.h"
#include "llvm/CodeGen/RegAllocPriorityAdvisor.h"
#include "llvm/CodeGen/RegisterClassInfo.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/InitializePasses.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"

using namespace llvm;

namespace MLBridge {

static thread_local GreedyAdvisors CurrentAdvisors;

void setGreedyAdvisors(GreedyAdvisors Advisors) { CurrentAdvisors = Advisors; }

namespace {

/// Tries registers in the order of their class. The AllocationOrder that greedy
/// passes cannot be read, because its header is private to LLVM.
class EvictionByWeight final : public RegAllocEvictionAdvisor {
public:
  using RegAllocEvictionAdvisor::RegAllocEvictionAdvisor;
  EvictionByWeight(const MachineFunction &MF, const RAGreedy &RA)
      : RegAllocEvictionAdvisor(MF, RA) {}

  MCRegister
  tryFindEvictionCandidate(const LiveInterval &Range, const AllocationOrder &,
                           uint8_t CostLimit,
                           const SmallVirtRegSet &Fixed) const override {
    MCRegister Best;
    float BestWeight = Range.weight();
    for (MCRegister Physical :
         RegClassInfo.getOrder(MRI->getRegClass(Range.reg()))) {
      constexpr uint8_t NoLimit = ~uint8_t(0);
      if (CostLimit != NoLimit && RegCosts[Physical] >= CostLimit)
        continue;
      if (Matrix->checkInterference(Range, Physical) >
          LiveRegMatrix::IK_VirtReg)
        continue;
      const std::optional<float> Weight = heaviest(Range, Physical, Fixed);
      if (Weight && *Weight < BestWeight) {
        BestWeight = *Weight;
        Best = Physical;
      }
    }
    return Best;
  }

  bool canEvictHintInterference(const LiveInterval &, MCRegister,
                                const SmallVirtRegSet &) const override {
    return false;
  }

private:
  /// Returns the largest weight of the ranges that \p Range would evict from
  /// \p Physical, or std::nullopt if one of them must not be evicted.
  std::optional<float> heaviest(const LiveInterval &Range, MCRegister Physical,
                                const SmallVirtRegSet &Fixed) const {
    float Weight = 0;
    for (MCRegUnit Unit : TRI->regunits(Physical)) {
      const auto &Others =
          Matrix->query(Range, Unit).interferingVRegs(MaxEvicted);
      if (Others.size() >= MaxEvicted)
        return std::nullopt;
      for (const LiveInterval *Other : Others) {
        if (Fixed.contains(Other->reg()) || !Other->isSpillable())
          return std::nullopt;
        Weight = std::max(Weight, Other->weight());
      }
    }
    return Weight;
  }
};

class PriorityBySize final : public RegAllocPriorityAdvisor {
public:
  using RegAllocPriorityAdvisor::RegAllocPriorityAdvisor;
  unsigned getPriority(const LiveInterval &Range) const override {
    return Range.getSize();
  }
};

using EvictionAnalysis = RegAllocEvictionAdvisorAnalysisLegacy;
using PriorityAnalysis = RegAllocPriorityAdvisorAnalysisLegacy;

/// The functions that create LLVM's own analyses.
PassInfo::NormalCtor_t StockEviction, StockPriority;

class EvictionProvider final : public RegAllocEvictionAdvisorProvider {
public:
  EvictionProvider(LLVMContext &Context, EvictionAnalysis &Stock)
      : RegAllocEvictionAdvisorProvider(AdvisorMode::Default, Context),
        Stock(Stock) {}
  std::unique_ptr<RegAllocEvictionAdvisor>
  getAdvisor(const MachineFunction &MF, const RAGreedy &RA,
             MachineBlockFrequencyInfo *Frequencies,
             MachineLoopInfo *Loops) override {
    if (CurrentAdvisors.Eviction == EvictionBy::Weight)
      return std::make_unique<EvictionByWeight>(MF, RA);
    std::unique_ptr<RegAllocEvictionAdvisor> Advisor =
        Stock.getProvider().getAdvisor(MF, RA, Frequencies, Loops);
    if (!CurrentAdvisors.EvictionModel)
      return Advisor;
    return makeModelEviction(MF, RA, *Frequencies, *Loops,
                             *CurrentAdvisors.EvictionModel,
                             std::move(Advisor));
  }

private:
  EvictionAnalysis &Stock;
};

class ReplacedEviction final : public EvictionAnalysis {
public:
  ReplacedEviction()
      : EvictionAnalysis(AdvisorMode::Default),
        Stock(static_cast<EvictionAnalysis *>(StockEviction())) {}
  bool doInitialization(Module &M) override {
    Stock->doInitialization(M);
    Provider = std::make_unique<EvictionProvider>(M.getContext(), *Stock);
    return false;
  }

private:
  std::unique_ptr<EvictionAnalysis> Stock;
};

class PriorityProvider final : public RegAllocPriorityAdvisorProvider {
public:
  explicit PriorityProvider(PriorityAnalysis &Stock)
      : RegAllocPriorityAdvisorProvider(AdvisorMode::Default), Stock(Stock) {}
  std::unique_ptr<RegAllocPriorityAdvisor>
  getAdvisor(const MachineFunction &MF, const RAGreedy &RA,
             SlotIndexes &Indexes) override {
    if (CurrentAdvisors.Priority == PriorityBy::Size)
      return std::make_unique<PriorityBySize>(MF, RA, &Indexes);
    std::unique_ptr<RegAllocPriorityAdvisor> Advisor =
        Stock.getProvider().getAdvisor(MF, RA, Indexes);
    if (!CurrentAdvisors.PriorityModel)
      return Advisor;
    return makeModelPriority(MF, RA, Indexes, *CurrentAdvisors.PriorityModel,
                             std::move(Advisor));
  }

private:
  PriorityAnalysis &Stock;
};

class ReplacedPriority final : public PriorityAnalysis {
public:
  ReplacedPriority()
      : PriorityAnalysis(AdvisorMode::Default),
        Stock(static_cast<PriorityAnalysis *>(StockPriority())) {}
  bool doInitialization(Module &M) override {
    Stock->doInitialization(M);
    Provider = std::make_unique<PriorityProvider>(*Stock);
    return false;
  }

private:
  std::unique_ptr<PriorityAnalysis> Stock;
};

} // namespace

/// If replacesAdvisors(), makes LLVM create a \p Replaced instead of an
/// \p Analysis. Sets \p Stock to the function that creates LLVM's analysis.
template <typename Analysis, typename Replaced, PassInfo::NormalCtor_t &Stock>
static void replace() {
  auto *Info = const_cast<PassInfo *>(
      PassRegistry::getPassRegistry()->getPassInfo(&Analysis::ID));
  Stock = Info->getNormalCtor();
  Info->setNormalCtor(
      []() -> Pass * { return replacesAdvisors() ? new Replaced : Stock(); });
}

namespace {
struct ReplaceAdvisors {
  ReplaceAdvisors() {
    PassRegistry &Registry = *PassRegistry::getPassRegistry();
    initializeRegAllocEvictionAdvisorAnalysisLegacyPass(Registry);
    initializeRegAllocPriorityAdvisorAnalysisLegacyPass(Registry);
    replace<EvictionAnalysis, ReplacedEviction, StockEviction>();
    replace<PriorityAnalysis, ReplacedPriority, StockPriority>();
  }
} OnLoad;

} // namespace

} // namespace MLBridge
