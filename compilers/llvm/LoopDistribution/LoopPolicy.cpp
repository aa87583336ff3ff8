//===- LoopPolicy.cpp - Decides about loops -------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines policies that are not learned, and creates the policy that the
/// options select.
///
//===----------------------------------------------------------------------===//

#include "LoopDistribution/LoopPolicy.h"

#include "LoopDistribution/LoopModels.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"

#include <random>

using namespace llvm;

namespace MLBridge {

namespace {

class FixedLoopPolicy final : public LoopPolicy {
public:
  explicit FixedLoopPolicy(FixedLoopDecisions Fixed)
      : Fixed(std::move(Fixed)) {}

  std::optional<std::vector<std::int64_t>>
  partition(const DependenceGraph &Graph, const LoopAnalyses &) override {
    const unsigned Number = Distributed++;
    if ((Fixed.OnlyLoop && *Fixed.OnlyLoop != Number) ||
        Fixed.Partition.size() != Graph.seeds().size())
      return std::nullopt;
    std::vector<std::int64_t> Result(Graph.nodes().size());
    for (auto [Seed, Loop] : zip_equal(Graph.seeds(), Fixed.Partition))
      Result[Seed] = Loop;
    return Result;
  }

  std::optional<std::int64_t> factors(const DependenceGraph &,
                                      const LoopAnalyses &,
                                      ArrayRef<float>) override {
    const unsigned Number = Vectorized++;
    if (!Fixed.Factors || (Fixed.OnlyLoop && *Fixed.OnlyLoop != Number))
      return std::nullopt;
    return *Fixed.Factors;
  }

private:
  const FixedLoopDecisions Fixed;
  unsigned Distributed = 0, Vectorized = 0;
};

class RandomLoopPolicy final : public LoopPolicy {
public:
  RandomLoopPolicy(unsigned Seed, const Module &M)
      : Generator(Seed ^
                  xxh3_64bits(sys::path::filename(M.getModuleIdentifier()))) {}

  std::optional<std::vector<std::int64_t>>
  partition(const DependenceGraph &Graph, const LoopAnalyses &) override {
    std::vector<std::int64_t> Result(Graph.nodes().size());
    // Mostly keep the source's order, because other orders are rarely legal.
    const bool IsOrdered = below(4) != 0;
    const std::uint64_t Loops = 1 + below(Graph.seeds().size());
    std::int64_t Last = 0;
    for (unsigned Seed : Graph.seeds()) {
      Last = IsOrdered ? Last + std::int64_t(below(2))
                       : std::int64_t(below(Loops));
      Result[Seed] = Last;
    }
    return Result;
  }

  std::optional<std::int64_t> factors(const DependenceGraph &,
                                      const LoopAnalyses &,
                                      ArrayRef<float> Legal) override {
    SmallVector<std::int64_t, 32> Choices;
    for (auto [Index, IsLegal] : enumerate(Legal))
      if (IsLegal != 0)
        Choices.push_back(std::int64_t(Index));
    return Choices[below(Choices.size())];
  }

private:
  /// Returns a random number below \p Limit. The bias of the modulo operation
  /// is negligible.
  std::uint64_t below(std::uint64_t Limit) { return Generator() % Limit; }

  std::mt19937_64 Generator;
};

} // namespace

Error checkChoice(StringRef What, ArrayRef<float> Mask, std::int64_t Choice) {
  if (Choice >= 0 && std::uint64_t(Choice) < Mask.size() &&
      Mask[std::size_t(Choice)] != 0)
    return Error::success();
  return Error(ErrorCode::Model,
               formatv("{0}: expected an index below {1} that action_mask "
                       "allows, found {2}",
                       What, Mask.size(), Choice));
}

std::unique_ptr<LoopPolicy> makeLoopPolicy(const LoopOptions &Options,
                                           Module &M) {
  if (!Options.DistributionSpec.empty() || !Options.FactorsSpec.empty())
    return LoopModels::open(Options, M);
  if (Options.RandomSeed)
    return std::make_unique<RandomLoopPolicy>(*Options.RandomSeed, M);
  if (!Options.Fixed.Partition.empty() || Options.Fixed.Factors)
    return std::make_unique<FixedLoopPolicy>(Options.Fixed);
  return nullptr;
}

} // namespace MLBridge
