//===- EntityHistogram.cpp - How often each IR entity occurs --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Counting. Which blocks and which operands count is what LLVM's own Embedder
/// does; tests/ir2vec holds one against the other.
///
//===----------------------------------------------------------------------===//

#include "IR2Vec/EntityHistogram.h"

#include "IR2Vec/KeptHistograms.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DepthFirstIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Module.h"

#include <algorithm>
#include <cstdint>
#include <optional>

using namespace llvm;

namespace MLBridge {

AnalysisKey EntityHistogramAnalysis::Key;

StringRef embeddingKindName(EmbeddingKind Kind) {
  switch (Kind) {
  case EmbeddingKind::Symbolic:
    return "symbolic";
  case EmbeddingKind::FlowAware:
    return "flow-aware";
  case EmbeddingKind::LLVMFlowAware:
    break;
  }
  return "llvm-flow-aware";
}

/// Counts as they are made.
using Tally = std::array<std::uint32_t, NumIREntities>;

static void count(const Instruction &I, Tally &Counts) {
  ++Counts[entityOfOpcode(I)];
  ++Counts[entityOfType(*I.getType())];
  for (const Use &Operand : I.operands())
    ++Counts[entityOfOperand(*Operand)];
  if (const auto *Compare = dyn_cast<CmpInst>(&I))
    ++Counts[entityOfPredicate(Compare->getPredicate())];
}

namespace {

/// Counts a function of whose blocks all can be reached, as nearly always.
///
/// After some passes, the instructions of a block lie all over the memory, and
/// a walk along it waits for each of them. So this walks along several blocks
/// at a time, a step on each in turn, and asks for what the next steps will
/// need. That takes half the time there, and half as much again where a module
/// has just been read, whose instructions lie one after the other.
class BlockCounter {
public:
  BlockCounter(const Function &F, Tally &Counts)
      : Next(F.begin()), End(F.end()), Counts(Counts),
        Places(F.getMaxBlockNumber()) {}

  /// The number of instructions; nothing if some block may be unreachable.
  std::optional<std::uint64_t> count() {
    while (InFlight != MaxInFlight && Next != End)
      Walks[InFlight++] = start();
    while (InFlight != 0) {
      for (unsigned Index = 0; Index != InFlight; ++Index)
        prefetchNeeds(*Walks[Index]);
      for (unsigned Index = 0; Index < InFlight;)
        Index += step(Walks[Index]);
    }
    // The entry has no predecessor.
    if (NumProven + 1 != NumStarted)
      return std::nullopt;
    return Instructions;
  }

private:
  /// Enough that memory is always busy; more does not help.
  static constexpr unsigned MaxInFlight = 8;

  /// Where a block is in the function, counted from one, as far as that is
  /// known, and whether one of its predecessors is before it.
  struct Place {
    unsigned Order = 0;
    bool Proven = false;
  };

  const Instruction *start() {
    Places[Next->getNumber()].Order = ++NumStarted;
    const BasicBlock &Block = *Next++;
    return &Block.front();
  }

  static void prefetchNeeds(const Instruction &I) {
    for (const Use &Operand : I.operands())
      __builtin_prefetch(Operand.get());
  }

  /// Counts where \p Walk is and goes on. False when it has ended and another
  /// one is in its place.
  bool step(const Instruction *&Walk) {
    if (!isWithoutEntities(*Walk)) {
      MLBridge::count(*Walk, Counts);
      ++Instructions;
    }
    const BasicBlock &Block = *Walk->getParent();
    auto Following = std::next(Walk->getIterator());
    if (Following != Block.end()) {
      Walk = &*Following;
    } else {
      finish(Block);
      if (Next == End) {
        Walk = Walks[--InFlight];
        return false;
      }
      Walk = start();
    }
    // Its operands lie in front of it.
    constexpr std::size_t CacheLine = 64;
    __builtin_prefetch(Walk);
    __builtin_prefetch(reinterpret_cast<const char *>(Walk) - CacheLine);
    return true;
  }

  /// Where each block but the entry has a predecessor before it, all can be
  /// reached.
  void finish(const BasicBlock &Block) {
    const unsigned Order = Places[Block.getNumber()].Order;
    for (const BasicBlock *Successor : successors(&Block)) {
      Place &Found = Places[Successor->getNumber()];
      const bool IsAfter = Found.Order == 0 || Found.Order > Order;
      if (IsAfter && !Found.Proven) {
        Found.Proven = true;
        ++NumProven;
      }
    }
  }

  Function::const_iterator Next;
  const Function::const_iterator End;
  Tally &Counts;
  SmallVector<Place, 128> Places;
  unsigned NumStarted = 0, NumProven = 0;
  std::uint64_t Instructions = 0;
  const Instruction *Walks[MaxInFlight];
  unsigned InFlight = 0;
};

/// A function's embedding with flow is a sum over its instructions, each with a
/// weight: 1, and what it weighs in each of those that use it. An operand
/// stands for the instruction that defines it if that one comes before its
/// user, depth first; so backwards all users of an instruction come before it,
/// and one pass is enough. Nothing but the weights is in it that could grow.
class FlowCounter {
public:
  explicit FlowCounter(EmbeddingKind Kind) : Kind(Kind) {}

  /// Adds \p F to \p Counts; returns the number of instructions.
  std::uint64_t count(const Function &F, MutableArrayRef<double> Counts) {
    for (const BasicBlock *Block : depth_first(&F))
      for (const Instruction &I : *Block)
        if (!isWithoutEntities(I)) {
          Positions[&I] = Instructions.size();
          Instructions.push_back(&I);
        }
    Weights.assign(Instructions.size(), 1.0);
    for (std::size_t Position = Instructions.size(); Position-- > 0;)
      count(Position, Counts);
    return Instructions.size();
  }

private:
  void count(std::size_t Position, MutableArrayRef<double> Counts) {
    const Instruction &I = *Instructions[Position];
    const double Weight = Weights[Position];
    const double Passed = Weight * weightOfOperand(I);
    Counts[entityOfOpcode(I)] += Weight;
    Counts[entityOfType(*I.getType())] += Weight;
    for (const Use &Operand : I.operands()) {
      if (const auto *Definition = dyn_cast<Instruction>(Operand)) {
        auto Found = Positions.find(Definition);
        if (Found != Positions.end() && Found->second < Position) {
          double &Sum = Weights[Found->second];
          Sum = std::min(Sum + Passed, EntityHistogram::MaxFlowWeight);
          continue;
        }
      }
      Counts[entityOfOperand(*Operand)] += Weight;
    }
    if (const auto *Compare = dyn_cast<CmpInst>(&I))
      Counts[entityOfPredicate(Compare->getPredicate())] += Weight;
  }

  double weightOfOperand(const Instruction &I) const {
    if (Kind == EmbeddingKind::LLVMFlowAware)
      return 1;
    constexpr double OfOne = 0.2, OfAll = 0.5;
    return std::min(OfOne, OfAll / std::max(1U, I.getNumOperands()));
  }

  EmbeddingKind Kind;
  SmallVector<const Instruction *, 0> Instructions;
  SmallVector<double, 0> Weights;
  DenseMap<const Instruction *, std::size_t> Positions;
};

} // namespace

EntityHistogram EntityHistogram::of(const Instruction &I) {
  EntityHistogram Histogram;
  if (isWithoutEntities(I))
    return Histogram;
  Tally Counts{};
  count(I, Counts);
  llvm::copy(Counts, Histogram.Counts.begin());
  Histogram.Instructions = 1;
  return Histogram;
}

EntityHistogram EntityHistogram::of(const Function &F, EmbeddingKind Kind) {
  EntityHistogram Histogram;
  if (F.isDeclaration())
    return Histogram;
  if (Kind != EmbeddingKind::Symbolic) {
    Histogram.Instructions = FlowCounter(Kind).count(F, Histogram.Counts);
    return Histogram;
  }
  Tally Counts{};
  if (std::optional<std::uint64_t> Instructions =
          BlockCounter(F, Counts).count()) {
    Histogram.Instructions = *Instructions;
  } else {
    Counts.fill(0);
    for (const BasicBlock *Block : depth_first(&F))
      for (const Instruction &I : *Block)
        if (!isWithoutEntities(I)) {
          count(I, Counts);
          ++Histogram.Instructions;
        }
  }
  llvm::copy(Counts, Histogram.Counts.begin());
  return Histogram;
}

EntityHistogram EntityHistogram::of(const Module &M, EmbeddingKind Kind) {
  EntityHistogram Histogram;
  for (const Function &F : M)
    if (!F.isDeclaration())
      Histogram += of(F, Kind);
  return Histogram;
}

EntityHistogram &EntityHistogram::operator+=(const EntityHistogram &Other) {
  for (unsigned Entity = 0; Entity != NumIREntities; ++Entity)
    Counts[Entity] += Other.Counts[Entity];
  Instructions += Other.Instructions;
  return *this;
}

EntityHistogramAnalysis::Result
EntityHistogramAnalysis::run(Function &F, FunctionAnalysisManager &) {
  if (const EntityHistogram *Known = Kept ? Kept->find(F) : nullptr)
    return *Known;
  return EntityHistogram::of(F, Kind);
}

} // namespace MLBridge
