//===- FactorCandidates.cpp - The effects of factors ----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Estimates the time of an iteration from the throughput of the instructions
/// and from the latency of recurrences.
///
//===----------------------------------------------------------------------===//

#include "LoopDistribution/FactorCandidates.h"

#include "LoopDistribution/VectorCosts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

using namespace llvm;

namespace MLBridge {

namespace {

/// Computes the columns of `factor_features` for one loop.
class FactorDescriber {
public:
  FactorDescriber(const DependenceGraph &Graph, const LoopAnalyses &Analyses)
      : Graph(Graph), Analyses(Analyses),
        Iterations(Analyses.SE.getSmallConstantTripCount(&Graph.loop())),
        RegisterBits(registerBits(Analyses)) {
    Loop &L = Graph.loop();
    for (const DependenceGraph::Node &Node : Graph.nodes()) {
      bool IsReduction = false;
      for (Instruction *I : Node.Instructions) {
        const unsigned Bits = I->getType()->getScalarSizeInBits();
        ElementBits.push_back(std::max(Bits, 1U));
        if (PHINode *Phi = headerPhi(*I, L))
          IsReduction |= kindsOf(*Phi, L, Analyses).isFreeReduction();
      }
      double &Slowest = IsReduction ? SlowestReduction : SlowestRecurrence;
      Slowest = std::max(Slowest, recurrenceLatencyOf(Node, Analyses));
    }
  }

  using Row = std::array<double, FactorColumns>;
  Row describe(LoopFactors Factors) {
    const auto Width = unsigned(std::max(Factors.Width, 1));
    const auto Interleave = unsigned(std::max(Factors.Interleave, 1));
    const auto Unroll = unsigned(std::max(Factors.Unroll, 1));
    const unsigned Copies = Width * Interleave * Unroll;
    Row Result{};
    const auto At = [&](FactorColumn Column) -> double & {
      return Result[std::size_t(Column)];
    };
    // Add one cycle for the branch of each iteration of the new loop.
    At(FactorColumn::Throughput) = cyclesAt(Width) + 1.0 / Copies;
    At(FactorColumn::Recurrence) =
        std::max(SlowestRecurrence, SlowestReduction / (Width * Interleave));
    for (unsigned Bits : ElementBits)
      At(FactorColumn::Instructions) +=
          double(divideCeil(std::uint64_t(Width) * Bits, RegisterBits)) *
          Interleave * Unroll;
    double &Remainder = At(FactorColumn::Remainder);
    if (Iterations != 0) {
      const unsigned Vectorized = Iterations / Copies;
      At(FactorColumn::Iterations) = Vectorized;
      Remainder = double(Iterations % Copies) / Iterations;
    }
    // The iterations after the new loop are not vectorized.
    At(FactorColumn::Cycles) =
        (1 - Remainder) * std::max(At(FactorColumn::Throughput),
                                   At(FactorColumn::Recurrence)) +
        Remainder *
            std::max({cyclesAt(1) + 1, SlowestRecurrence, SlowestReduction});
    return Result;
  }

  /// Returns the estimated cycles of an original iteration if vectors have
  /// \p Width elements.
  double cyclesAt(unsigned Width) {
    const auto [Position, IsNew] = Throughput.try_emplace(Width);
    double &Sum = Position->second;
    if (!IsNew)
      return Sum;
    for (const DependenceGraph::Node &Node : Graph.nodes())
      for (const Instruction *I : Node.Instructions)
        Sum += vectorCyclesOf(*I, Width, Graph, Analyses);
    return Sum /= Width;
  }

private:
  const DependenceGraph &Graph;
  const LoopAnalyses &Analyses;
  const unsigned Iterations;
  const std::uint64_t RegisterBits;
  /// The size of each instruction's value in bits.
  SmallVector<unsigned, 32> ElementBits;
  double SlowestRecurrence = 0, SlowestReduction = 0;
  std::map<unsigned, double> Throughput;
};

} // namespace

FactorCandidates::FactorCandidates(const DependenceGraph &Graph,
                                   const LoopAnalyses &Analyses,
                                   ArrayRef<float> Legal)
    : Legal(Legal) {
  FactorDescriber Describer(Graph, Analyses);
  // Assume that LLVM chooses the vectors that are estimated to be fastest.
  LoopFactors Probable{1, 1, 0};
  for (auto [Each, IsLegal] : zip_equal(factorChoices(), Legal))
    if (IsLegal != 0 && Each.Width > 1 &&
        Describer.cyclesAt(unsigned(Each.Width)) <
            Describer.cyclesAt(unsigned(Probable.Width)))
      Probable.Width = Each.Width;
  for (const LoopFactors &Each : factorChoices()) {
    Choices.insert(Choices.end(), {Each.Width, Each.Interleave, Each.Unroll});
    const auto Row = Describer.describe(Each.areDefault() ? Probable : Each);
    for (auto [Column, Value] : enumerate(Row))
      Described.push_back(float(FactorColumn(Column) == FactorColumn::Remainder
                                    ? Value
                                    : std::log1p(Value)));
  }
}

void FactorCandidates::setFeatures(FeatureSet &Into) const {
  const auto Count = std::int64_t(Legal.size());
  Into.set("choices", TensorRef(Choices, {Count, 3}));
  Into.set("factor_features",
           TensorRef(Described, {Count, std::int64_t(FactorColumns)}));
  Into.set("action_mask", Span<const float>(Legal.data(), Legal.size()));
}

} // namespace MLBridge
