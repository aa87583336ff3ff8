//===- LoopPrinterPass.cpp - Prints the features of loops -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Converts feature sets to JSON.
///
//===----------------------------------------------------------------------===//

#include "LoopDistribution/LoopPrinterPass.h"

#include "LoopDistribution/DecidedLoops.h"
#include "LoopDistribution/DistributionCandidates.h"
#include "LoopDistribution/FactorCandidates.h"
#include "LoopDistribution/FunctionAnalyses.h"
#include "LoopDistribution/LoopObservation.h"
#include "Support/ModelSession.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/DebugLoc.h"
#include "llvm/IR/Function.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace MLBridge {

template <typename T>
static json::Value rows(Span<const T> Elements, const Shape &Dims) {
  if (Dims.rank() < 2)
    return json::Array(Elements);
  json::Array Result;
  const auto Width = std::size_t(Dims[1]);
  for (std::size_t Begin = 0; Begin < Elements.size(); Begin += Width)
    Result.push_back(json::Array(ArrayRef(Elements.data() + Begin, Width)));
  return Result;
}

/// Returns a tensor of float or int32 as nested arrays.
static json::Value rows(const TensorView &Tensor) {
  if (const auto Floats = Tensor.as<float>())
    return rows(*Floats, Tensor.Dims);
  if (const auto Integers = Tensor.as<std::int32_t>())
    return rows(*Integers, Tensor.Dims);
  return nullptr;
}

static void addFeatures(const DependenceGraph &Graph,
                        const LoopAnalyses &Analyses, json::Object &Into) {
  FeatureSet Features;
  const LoopObservation Observation(Graph, Analyses, nullptr);
  const DistributionCandidates Candidates(Graph, Analyses);
  Observation.setFeatures(Features);
  Candidates.setFeatures(Features);
  const std::vector<float> Legal = legalFactors(Graph, Analyses);
  const FactorCandidates Factors(Graph, Analyses, Legal);
  Factors.setFeatures(Features);
  for (const TensorView &Tensor : Features.tensors())
    Into[std::string(Tensor.Name)] = rows(Tensor);
}

PreservedAnalyses LoopPrinterPass::run(Function &F,
                                       FunctionAnalysisManager &FAM) {
  const FunctionAnalyses Own(F, FAM);
  const LoopAnalyses &Analyses = *Own;
  for (Loop *L : undecidedLoops(Analyses.LI)) {
    json::Object Line{{"function", json::fixUTF8(F.getName())},
                      {"header", json::fixUTF8(L->getHeader()->getName())}};
    if (const DebugLoc Start = L->getStartLoc())
      Line["line"] = Start.getLine();
    Expected<DependenceGraph> Graph = DependenceGraph::build(*L, Analyses);
    if (Graph)
      addFeatures(*Graph, Analyses, Line);
    else
      Line["declined"] = json::fixUTF8(Graph.takeError().message());
    std::string Text;
    raw_string_ostream(Text) << json::Value(std::move(Line));
    printLine(Text);
  }
  return PreservedAnalyses::all();
}

} // namespace MLBridge
