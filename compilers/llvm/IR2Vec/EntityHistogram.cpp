//===- EntityHistogram.cpp - Counts of IR entities ------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Counts the same blocks and operands as LLVM's Embedder. tests/ir2vec
/// compares the results with LLVM's.
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

/// The counts during a traversal, as integers.
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

/// Counts the entities of a function whose blocks are all reachable. Nearly all
/// functions are of this kind.
///
/// After some passes, the instructions of a block are scattered over memory, so
/// a simple traversal waits for memory at each one. Therefore, this class
/// alternates between several blocks. It counts one instruction of each block
/// and prefetches the memory that the next instructions need. For scattered
/// instructions, this method halves the time. For a module that has just been
/// read, whose instructions are contiguous, this method saves a third of the
/// time.
class BlockCounter {
public:
  BlockCounter(const Function &F, Tally &Counts)
      : Next(F.begin()), End(F.end()), Counts(Counts),
        Places(F.getMaxBlockNumber()) {}

  /// Returns the number of instructions, or an empty result if a block may be
  /// unreachable.
  std::optional<std::uint64_t> count() {
    while (InFlight != MaxInFlight && Next != End)
      Walks[InFlight++] = start();
    while (InFlight != 0) {
      for (unsigned Index = 0; Index != InFlight; ++Index)
        prefetchNeeds(*Walks[Index]);
      for (unsigned Index = 0; Index < InFlight;)
        Index += step(Walks[Index]);
    }
    // Add 1 for the entry block, which no predecessor proves to be reachable.
    if (NumProven + 1 != NumStarted)
      return std::nullopt;
    return Instructions;
  }

private:
  /// The number of blocks between which the traversal alternates. A larger
  /// number was not faster.
  static constexpr unsigned MaxInFlight = 8;

  /// Describes a block. `Order` is the block's position in the function.
  /// Positions start at 1, and 0 means that the position is unknown. `Proven`
  /// is true if one of the block's predecessors precedes the block.
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

  /// Counts the instruction at \p Walk and advances \p Walk. If no block is
  /// left, replaces \p Walk with the last one of Walks and returns false.
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
    // Prefetch the cache line before the instruction too, because the operands
    // precede the instruction in memory.
    constexpr std::size_t CacheLine = 64;
    __builtin_prefetch(Walk);
    __builtin_prefetch(reinterpret_cast<const char *>(Walk) - CacheLine);
    return true;
  }

  /// Marks the successors of \p Block that follow it. If each block except the
  /// entry has a predecessor that precedes it, all blocks are reachable.
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

/// Computes a function's histogram for flow-aware embeddings, as a weighted sum
/// over its instructions. Each instruction starts with weight 1. If an operand
/// is an instruction that comes earlier in depth-first order, the user passes a
/// share of its own weight to that instruction. Instructions are processed in
/// reverse order, so users come before their operands and one pass is enough.
class FlowCounter {
public:
  explicit FlowCounter(EmbeddingKind Kind) : Kind(Kind) {}

  /// Adds the weighted counts of \p F to \p Counts. Returns the number of
  /// instructions.
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
