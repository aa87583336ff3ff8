//===- LoopFactors.cpp - Factors of vectorizing and unrolling -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes factors as metadata, and finds the legal factors with the help of
/// LLVM's vectorizer.
///
//===----------------------------------------------------------------------===//

#include "LoopDistribution/LoopFactors.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopAccessAnalysis.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Metadata.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Vectorize/LoopVectorizationLegality.h"

#include <algorithm>
#include <iterator>

using namespace llvm;

namespace MLBridge {

ArrayRef<LoopFactors> factorChoices() {
  // LLVM's choice, unrolled scalar loops, interleaved scalar loops, vectors.
  static constexpr LoopFactors Choices[] = {
      {0, 0, 0},  {1, 1, 1},  {1, 1, 2}, {1, 1, 4}, {1, 1, 8},  {1, 2, 0},
      {1, 4, 0},  {2, 1, 0},  {2, 2, 0}, {2, 4, 0}, {4, 1, 0},  {4, 2, 0},
      {4, 4, 0},  {8, 1, 0},  {8, 2, 0}, {8, 4, 0}, {16, 1, 0}, {16, 2, 0},
      {16, 4, 0}, {32, 1, 0}, {32, 2, 0}};
  return Choices;
}

void setFactors(Loop &L, LoopFactors Factors) {
  LLVMContext &Context = L.getHeader()->getContext();
  if (Factors.Width != 0)
    addStringMetadataToLoop(&L, "llvm.loop.vectorize.width",
                            unsigned(Factors.Width));
  if (Factors.Interleave != 0)
    addStringMetadataToLoop(&L, "llvm.loop.interleave.count",
                            unsigned(Factors.Interleave));
  if (Factors.Unroll > 1)
    addStringMetadataToLoop(&L, "llvm.loop.unroll.count",
                            unsigned(Factors.Unroll));
  if (Factors.Unroll == 1) {
    MDNode *Disable = MDNode::get(
        Context, MDString::get(Context, "llvm.loop.unroll.disable"));
    L.setLoopID(
        makePostTransformationMetadata(Context, L.getLoopID(), {}, {Disable}));
  }
}

/// Returns the trip count that LLVM's vectorizer assumes, or 0 if unknown.
static unsigned assumedIterations(Loop &L, ScalarEvolution &SE) {
  if (const unsigned Exact = SE.getSmallConstantTripCount(&L))
    return Exact;
  if (const auto Estimated = getLoopEstimatedTripCount(&L))
    return *Estimated;
  return SE.getSmallConstantMaxTripCount(&L);
}

/// True if the vectorizer would have to check assumptions at run time.
static bool needsChecks(const LoopAccessInfo &Accesses,
                        const PredicatedScalarEvolution &Predicated) {
  return Accesses.getRuntimePointerChecking()->Need ||
         !Accesses.getSymbolicStrides().empty() ||
         !Accesses.getPSE().getPredicate().isAlwaysTrue() ||
         !Predicated.getPredicate().isAlwaysTrue();
}

std::vector<float> legalFactors(const DependenceGraph &Graph,
                                const LoopAnalyses &Analyses) {
  Loop &L = Graph.loop();
  const ArrayRef<LoopFactors> Choices = factorChoices();
  std::vector<float> Legal(Choices.size());
  Legal[0] = 1;
  Function &F = *L.getHeader()->getParent();
  LoopVectorizeHints Hints(&L, /*InterleaveOnlyWhenForced=*/false,
                           Analyses.ORE);
  LoopVectorizationRequirements Requirements;
  PredicatedScalarEvolution Predicated(Analyses.SE, L);
  LoopVectorizationLegality Legality(
      &L, Predicated, &Analyses.DT, &Analyses.TTI, &Analyses.TLI, &F,
      Graph.accessManager(), &Analyses.LI, &Analyses.ORE, &Requirements, &Hints,
      &Analyses.DB, &Analyses.AC, /*AllowRuntimeSCEVChecks=*/true,
      &Analyses.AA);
  const bool CanVectorize = Legality.canVectorize(/*UseVPlanNativePath=*/false);
  const bool KeepsOrder = Requirements.getExactFPInst() == nullptr;

  unsigned Smallest = 64, Widest = 8, Instructions = 0;
  for (const BasicBlock *Block : L.blocks())
    for (const Instruction &I : *Block) {
      ++Instructions;
      if (!isa<LoadInst, StoreInst, PHINode>(I))
        continue;
      const Type *T = isa<PHINode>(I)
                          ? I.getType()
                          : getLoadStoreType(const_cast<Instruction *>(&I));
      const unsigned Bits = T->getScalarSizeInBits();
      Widest = std::max(Widest, Bits ? Bits : 64);
      Smallest = std::min(Smallest, Bits ? Bits : 64);
    }
  Smallest = std::max(Smallest, 8U);
  const std::uint64_t Register = vectorRegisterBits(Analyses);
  // Respect the safe width, because the vectorizer ignores requests for wider
  // vectors and prints a remark.
  const MemoryDepChecker &Checker = Graph.accesses().getDepChecker();
  std::uint64_t SafeBits = Checker.getMaxSafeVectorWidthInBits();
  if (!Checker.isSafeForAnyStoreLoadForwardDistances())
    SafeBits =
        std::min(SafeBits, Checker.getStoreLoadForwardSafeDistanceInBits());
  const unsigned Iterations = Analyses.SE.getSmallConstantTripCount(&L);
  const unsigned Assumed = assumedIterations(L, Analyses.SE);
  // For loops with fewer iterations, the vectorizer adds no checks at run time
  // and no remainder loops. It prints a remark instead.
  constexpr unsigned MinIterations = 16;
  const bool IsShort = Assumed != 0 && Assumed < MinIterations;
  const bool AllowsVectors =
      !IsShort || !needsChecks(Graph.accesses(), Predicated);
  // Limit the instructions in a loop body, because LLVM is slow for larger
  // bodies.
  constexpr unsigned MaxBody = 2048;
  for (auto [Choice, IsLegal] : zip_equal(Choices, Legal)) {
    const auto Width = unsigned(Choice.Width);
    const auto Interleave = unsigned(std::max(Choice.Interleave, 1));
    const auto Unroll = unsigned(std::max(Choice.Unroll, 1));
    if (Choice.areDefault())
      continue;
    const unsigned Copies = std::max(Width, 1U) * Interleave * Unroll;
    bool Fits = Instructions * Copies <= MaxBody &&
                (Iterations == 0 || Copies <= Iterations);
    if (Width > 1 || Interleave > 1)
      Fits &= CanVectorize && KeepsOrder;
    // A wider vector is useless if its elements would not fit into two
    // registers even with the loop's smallest element type.
    if (Width > 1)
      Fits &= AllowsVectors && (!IsShort || Assumed % Copies == 0) &&
              std::uint64_t(Width) * Smallest <= 2 * Register &&
              std::uint64_t(Width) * Widest <= SafeBits;
    IsLegal = Fits;
  }
  return Legal;
}

} // namespace MLBridge
