//===- ModelAdvisors.cpp - Greedy's advisors, decided by a model ----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implements advisors of LLVM's greedy allocator that request evictions and
/// priorities from a model.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/AdvisorFeatures.h"
#include "RegAlloc/AdvisorModel.h"
#include "RegAlloc/GreedyAdvisors.h"
#include "Support/ModelRunnerAdapter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/CodeGen/LiveIntervals.h"
#include "llvm/CodeGen/LiveRegMatrix.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/RegAllocEvictionAdvisor.h"
#include "llvm/CodeGen/RegAllocPriorityAdvisor.h"
#include "llvm/CodeGen/RegisterClassInfo.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/VirtRegMap.h"

#include <cmath>

using namespace llvm;

namespace MLBridge {
namespace {

/// Computes greedy's cascade numbers, which greedy hides. A range evicts only
/// ranges with a lower number and passes its own number to them, so evictions
/// come to an end. The advisor makes all evictions, so it can compute the
/// numbers.
class Cascades {
public:
  /// Returns the number that \p Reg has or would get.
  unsigned of(Register Reg) const {
    const unsigned Number = Numbers.lookup(Reg);
    return Number != 0 ? Number : Next;
  }
  unsigned given(Register Reg) const { return Numbers.lookup(Reg); }
  void evict(Register Evictor, ArrayRef<const LiveInterval *> Evicted) {
    unsigned &Number = Numbers[Evictor];
    if (Number == 0)
      Number = Next++;
    const unsigned Passed = Number;
    for (const LiveInterval *Range : Evicted)
      Numbers[Range->reg()] = Passed;
  }

private:
  DenseMap<Register, unsigned> Numbers;
  unsigned Next = 1;
};

using Ranges = SmallVector<const LiveInterval *, 16>;

class ModelEviction final : public RegAllocEvictionAdvisor {
public:
  ModelEviction(const MachineFunction &MF, const RAGreedy &Greedy,
                MachineBlockFrequencyInfo &Frequencies, MachineLoopInfo &Loops,
                AdvisorModel &Model,
                std::unique_ptr<RegAllocEvictionAdvisor> Stock)
      : RegAllocEvictionAdvisor(MF, Greedy), Model(Model),
        Stock(std::move(Stock)),
        StockPriority(MF, Greedy, LIS->getSlotIndexes()),
        Features(MF, *LIS, *VRM, Frequencies, Loops) {
    Model.adapter().switchContext(MF.getName());
  }

  MCRegister
  tryFindEvictionCandidate(const LiveInterval &Range,
                           const AllocationOrder &Order, uint8_t CostLimit,
                           const SmallVirtRegSet &Fixed) const override;

  bool canEvictHintInterference(const LiveInterval &Range, MCRegister Physical,
                                const SmallVirtRegSet &Fixed) const override {
    if (!Stock->canEvictHintInterference(Range, Physical, Fixed))
      return false;
    // Greedy evicts if this function returns true.
    Numbers.evict(Range.reg(), interfering(Range, Physical));
    return true;
  }

private:
  struct Position {
    MCRegister Register;
    bool IsHint;
  };
  SmallVector<Position, 32> order(const LiveInterval &Range,
                                  unsigned Limit) const;
  Ranges interfering(const LiveInterval &Range, MCRegister Physical) const;
  bool setFeatures(std::size_t At, const LiveInterval &Range, Position P,
                   const SmallVirtRegSet &Fixed) const;
  /// Requests a position from the model. Returns std::nullopt if LLVM decides.
  std::optional<std::size_t> requestPosition() const;

  AdvisorModel &Model;
  const std::unique_ptr<RegAllocEvictionAdvisor> Stock;
  const DefaultPriorityAdvisor StockPriority;
  // LLVM declares the functions const, although an advisor has state.
  mutable EvictionFeatures Features;
  mutable Cascades Numbers;
};

} // namespace

/// Returns the registers that \p Range can have, in the order in which greedy
/// tries them. Greedy's own order cannot be read, because its type is private.
/// \p Limit is the number of registers of the class to use, or 0 for all.
SmallVector<ModelEviction::Position, 32>
ModelEviction::order(const LiveInterval &Range, unsigned Limit) const {
  const ArrayRef<MCPhysReg> Class =
      RegClassInfo.getOrder(MRI->getRegClass(Range.reg()));
  SmallVector<MCPhysReg, 16> Hints;
  const bool Hard =
      TRI->getRegAllocationHints(Range.reg(), Class, Hints, MF, VRM, Matrix);
  SmallVector<Position, 32> Result;
  for (MCPhysReg Hint : Hints)
    Result.push_back({Hint, true});
  if (!Hard)
    for (MCPhysReg Physical : Limit ? Class.take_front(Limit) : Class)
      if (!is_contained(Hints, Physical))
        Result.push_back({Physical, false});
  return Result;
}

Ranges ModelEviction::interfering(const LiveInterval &Range,
                                  MCRegister Physical) const {
  Ranges Result;
  for (MCRegUnit Unit : TRI->regunits(Physical))
    append_range(Result, Matrix->query(Range, Unit).interferingVRegs());
  return Result;
}

/// Sets the features of the position \p At. Returns false and leaves the
/// position masked if greedy's rules forbid the eviction.
bool ModelEviction::setFeatures(std::size_t At, const LiveInterval &Range,
                                Position P,
                                const SmallVirtRegSet &Fixed) const {
  if (Matrix->checkInterference(Range, P.Register) > LiveRegMatrix::IK_VirtReg)
    return false;
  const bool IsLocal = LIS->intervalIsInOneMBB(Range);
  const unsigned Cascade = Numbers.of(Range.reg());
  Ranges Found;
  EvictionFeatures::Occupants Holders;
  Holders.IsHint = P.IsHint;
  Holders.Lowest = VisibleStage::Done;
  for (MCRegUnit Unit : TRI->regunits(P.Register)) {
    const auto &Others =
        Matrix->query(Range, Unit).interferingVRegs(MaxEvicted);
    if (Others.size() >= MaxEvicted)
      return false;
    for (const LiveInterval *Other : Others) {
      const VisibleStage Stage = stageOf(*Other, StockPriority);
      if (Stage == VisibleStage::Done || Fixed.contains(Other->reg()) ||
          Cascade <= Numbers.given(Other->reg()))
        return false;
      Holders.Lowest = std::min(Holders.Lowest, Stage);
      Holders.Highest = std::max(Holders.Highest, Stage);
      Holders.Local +=
          IsLocal && LIS->intervalIsInOneMBB(*Other) &&
          (!EnableLocalReassign || !canReassign(*Other, P.Register));
      Found.push_back(Other);
    }
  }
  Holders.Ranges = Found;
  Features.set(At, Holders);
  return true;
}

std::optional<std::size_t> ModelEviction::requestPosition() const {
  Features.finish(Model.adapter());
  const std::optional<std::int64_t> Reply = Model.request<std::int64_t>();
  if (!Reply)
    return std::nullopt;
  if (*Reply < 0 || std::size_t(*Reply) >= EvictionFeatures::Positions ||
      !Features.isSet(std::size_t(*Reply))) {
    Model.refuse("advice 'index_to_evict': expected a position whose 'mask' is "
                 "1, found " +
                 std::to_string(*Reply));
    return std::nullopt;
  }
  return std::size_t(*Reply);
}

MCRegister ModelEviction::tryFindEvictionCandidate(
    const LiveInterval &Range, const AllocationOrder &Order, uint8_t CostLimit,
    const SmallVirtRegSet &Fixed) const {
  auto ByLLVM = [&] {
    return Stock->tryFindEvictionCandidate(Range, Order, CostLimit, Fixed);
  };
  auto Evict = [&](MCRegister Chosen) {
    if (Chosen)
      Numbers.evict(Range.reg(), interfering(Range, Chosen));
    return Chosen;
  };
  if (Model.hasFailed() || !Range.isSpillable())
    return Evict(ByLLVM());
  const std::optional<unsigned> Limit = getOrderLimit(Range, Order, CostLimit);
  if (!Limit)
    return MCRegister();
  const SmallVector<Position, 32> Registers = order(Range, *Limit);
  if (Registers.size() > EvictionFeatures::Candidate)
    return Evict(ByLLVM());

  Features.begin();
  bool CanEvict = false;
  for (const auto &[At, P] : enumerate(Registers))
    if (canAllocatePhysReg(CostLimit, P.Register))
      CanEvict |= setFeatures(At, Range, P, Fixed);
  if (!CanEvict)
    return MCRegister();
  const VisibleStage Stage = stageOf(Range, StockPriority);
  EvictionFeatures::Occupants Own;
  const LiveInterval *const Pointer = &Range;
  Own.Ranges = Pointer;
  Own.Lowest = Own.Highest = Stage;
  Features.set(EvictionFeatures::Candidate, Own);

  std::optional<std::size_t> Chosen = requestPosition();
  if (Model.hasFailed())
    return Evict(ByLLVM());
  auto RegisterAt = [&](std::size_t At) {
    return At == EvictionFeatures::Candidate ? MCRegister()
                                             : Registers[At].Register;
  };
  std::optional<std::int64_t> Default;
  if (!Chosen || Model.comparesWithDefault()) {
    const MCRegister Stocks = ByLLVM();
    Default = find_if(Registers,
                      [&](const Position &P) { return P.Register == Stocks; }) -
              Registers.begin();
    if (!Stocks)
      Default = EvictionFeatures::Candidate;
    if (!Chosen) {
      Model.decided<std::int64_t>(*Default, std::nullopt);
      return Evict(Stocks);
    }
  }
  Model.decided<std::int64_t>(std::int64_t(*Chosen), Default);
  if (Model.onlyCompares())
    return Evict(RegisterAt(std::size_t(*Default)));
  return Evict(RegisterAt(*Chosen));
}

namespace {

class ModelPriority final : public RegAllocPriorityAdvisor {
public:
  ModelPriority(const MachineFunction &MF, const RAGreedy &Greedy,
                SlotIndexes &Indexes, AdvisorModel &Model,
                std::unique_ptr<RegAllocPriorityAdvisor> Stock)
      : RegAllocPriorityAdvisor(MF, Greedy, &Indexes), Model(Model),
        Stock(std::move(Stock)), Default(MF, Greedy, &Indexes) {
    Model.adapter().switchContext(MF.getName());
  }

  unsigned getPriority(const LiveInterval &Range) const override {
    if (Model.hasFailed())
      return Stock->getPriority(Range);
    PriorityFeatures::set(Range, stageOf(Range, Default), Model.adapter());
    const std::optional<float> Reply = Model.request<float>();
    if (Reply && !std::isfinite(*Reply))
      Model.refuse("advice 'priority': expected a finite number, found " +
                   std::to_string(*Reply));
    if (!Reply || Model.hasFailed())
      return Stock->getPriority(Range);
    Model.decided<float>(*Reply, std::nullopt);
    // LLVM truncates the advice to an unsigned integer, so limit it to the
    // largest float below 2^32.
    constexpr float Largest = 4294967040.0F;
    return unsigned(std::clamp(*Reply, 0.0F, Largest));
  }

private:
  AdvisorModel &Model;
  const std::unique_ptr<RegAllocPriorityAdvisor> Stock;
  const DefaultPriorityAdvisor Default;
};

} // namespace

std::unique_ptr<RegAllocEvictionAdvisor>
makeModelEviction(const MachineFunction &MF, const RAGreedy &Greedy,
                  MachineBlockFrequencyInfo &Frequencies,
                  MachineLoopInfo &Loops, AdvisorModel &Model,
                  std::unique_ptr<RegAllocEvictionAdvisor> Stock) {
  return std::make_unique<ModelEviction>(MF, Greedy, Frequencies, Loops, Model,
                                         std::move(Stock));
}

std::unique_ptr<RegAllocPriorityAdvisor>
makeModelPriority(const MachineFunction &MF, const RAGreedy &Greedy,
                  SlotIndexes &Indexes, AdvisorModel &Model,
                  std::unique_ptr<RegAllocPriorityAdvisor> Stock) {
  return std::make_unique<ModelPriority>(MF, Greedy, Indexes, Model,
                                         std::move(Stock));
}

} // namespace MLBridge
