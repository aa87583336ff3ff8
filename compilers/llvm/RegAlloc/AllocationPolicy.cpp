//===- AllocationPolicy.cpp - Policies that are not learned ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implements policies that are not learned. The weight order is the baseline
/// of learned policies. The random policy tests that no sequence of decisions
/// makes wrong code.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/AllocationPolicy.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/CodeGen/LiveInterval.h"

#include <random>

using namespace llvm;

namespace MLBridge {

AllocationPolicy::~AllocationPolicy() = default;

namespace {

class WeightOrder : public AllocationPolicy {
public:
  std::optional<std::size_t>
  selectNode(ArrayRef<const LiveInterval *> Ready) override {
    // Break ties by the register's number, because the order of Ready varies.
    const auto *Heaviest =
        max_element(Ready, [](const LiveInterval *A, const LiveInterval *B) {
          return std::pair(A->weight(), B->reg().id()) <
                 std::pair(B->weight(), A->reg().id());
        });
    return Heaviest - Ready.begin();
  }

  bool splits() const override { return false; }

  std::optional<AllocationTask> selectTask(const LiveInterval &,
                                           ArrayRef<Colour>) override {
    return AllocationTask::Colour;
  }

  std::optional<std::size_t> selectColour(const LiveInterval &Range,
                                          ArrayRef<Colour> Colours,
                                          bool CanSpill) override {
    for (const auto &[I, C] : enumerate(Colours))
      if (C.Evicted.empty() || C.EvictedWeight <= Range.weight())
        return I;
    return CanSpill ? Spill : 0;
  }

  std::optional<std::size_t> selectSplit(const LiveInterval &,
                                         ArrayRef<SplitPoint>) override {
    return 0;
  }

  EvictionKind evictionKind() const override { return EvictionKind::Spill; }
};

class FreeColours final : public WeightOrder {
public:
  std::optional<std::size_t>
  selectColour(const LiveInterval &, ArrayRef<Colour> Colours, bool) override {
    return !Colours.empty() && Colours.front().Evicted.empty() ? 0 : Leave;
  }
};

class RandomPolicy final : public AllocationPolicy {
public:
  RandomPolicy(const RandomPolicyOptions &Options, std::uint64_t Salt)
      : Options(Options), Generator(Salt ^ (Options.Seed * GoldenRatio)) {}

  std::optional<std::size_t>
  selectNode(ArrayRef<const LiveInterval *> Ready) override {
    return choose(Ready.size());
  }

  std::optional<AllocationTask> selectTask(const LiveInterval &,
                                           ArrayRef<Colour>) override {
    if (stops())
      return std::nullopt;
    return percent(Options.Split) ? AllocationTask::Split
                                  : AllocationTask::Colour;
  }

  std::optional<std::size_t> selectColour(const LiveInterval &,
                                          ArrayRef<Colour> Colours,
                                          bool CanSpill) override {
    if (stops())
      return std::nullopt;
    if (Colours.empty() || (CanSpill && percent(Options.Spill)))
      return Spill;
    const std::size_t Free =
        count_if(Colours, [](const Colour &C) { return C.Evicted.empty(); });
    if (Free != 0 && !percent(Options.Evict))
      return choose(Free);
    return choose(Colours.size());
  }

  std::optional<std::size_t> selectSplit(const LiveInterval &,
                                         ArrayRef<SplitPoint> Points) override {
    return choose(Points.size());
  }

  bool evictsDespiteFreeColours() const override { return Options.Evict != 0; }

private:
  static constexpr std::uint64_t GoldenRatio = 0x9E3779B97F4A7C15;

  std::size_t choose(std::size_t Count) { return Generator() % Count; }
  bool percent(unsigned Chance) { return choose(100) < Chance; }
  bool stops() { return choose(1000) < Options.Stop; }

  const RandomPolicyOptions Options;
  std::mt19937_64 Generator;
};

} // namespace

std::unique_ptr<AllocationPolicy> makeWeightOrder() {
  return std::make_unique<WeightOrder>();
}

std::unique_ptr<AllocationPolicy> makeFreeColours() {
  return std::make_unique<FreeColours>();
}

std::unique_ptr<AllocationPolicy>
makeRandomPolicy(const RandomPolicyOptions &Options, std::uint64_t Salt) {
  return std::make_unique<RandomPolicy>(Options, Salt);
}

} // namespace MLBridge
