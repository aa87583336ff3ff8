//===- TilingModel.cpp - The model that decides about loop nests ----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Sends loop nests to a model and checks the replies.
///
//===----------------------------------------------------------------------===//

#include "TilingModel.h"

#include "ChoiceFeatures.h"

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#ifdef MLBRIDGE_HAS_ONNX
#include "MLCompilerBridge/Runners/ONNXModelRunner.h"
#endif

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace MLBridge {

static RunnerFactory &makeFactory() {
  auto &Factory = *new RunnerFactory;
#ifdef MLBRIDGE_HAS_ONNX
  addONNX(Factory);
#endif
  Factory.setConnectTimeout(std::chrono::seconds(5));
  return Factory;
}

std::string TilingModel::open(StringRef Spec) {
  // Passes of several threads share the in-process models. The factory is never
  // destroyed, because the models' libraries may be unloaded before it.
  static const RunnerFactory &Factory = makeFactory();
  auto Opened = Factory.create(std::string_view(Spec));
  if (!Opened)
    return Opened.takeError().str();
  Runner = std::move(*Opened);
  return "";
}

/// Converts a reply, int64[2n+1]: n tile sizes, the order, the unroll factor.
/// Sets \p Failure if it is not a legal choice.
static TilingChoice choiceOf(ArrayRef<std::int64_t> Reply, const LoopNest &Nest,
                             std::string &Failure) {
  const size_t N = Nest.size();
  TilingChoice Choice = TilingChoice::leave(N);
  if (Reply.size() != 2 * N + 1) {
    Failure =
        formatv("the advice is not a tiling: expected {0} numbers for {1} "
                "loops, found {2}",
                2 * N + 1, N, Reply.size());
    return Choice;
  }
  for (auto [Loop, Place] : enumerate(Reply.slice(N, N)))
    Choice.Order[Loop] = Place < 0 || Place >= std::int64_t(N) ? N : Place;
  Choice.Tiles.assign(Reply.begin(), Reply.begin() + N);
  Choice.Unroll = Reply.back();
  if (std::optional<std::string> Why = Nest.illegal(Choice)) {
    Failure = "the advice is not a tiling: " + *Why;
    return TilingChoice::leave(N);
  }
  return Choice;
}

TilingChoice TilingModel::choose(const LoopNest &Nest, StringRef Function,
                                 std::string &Failure) {
  const NestTensors T(Nest);
  const std::int64_t N = Nest.size(), C = T.NumChoices;
  Runner->switchContext(std::string_view(Function));
  Runner->populateFeatures(
      std::pair{"trip_counts", ArrayRef(Nest.TripCounts)},
      std::pair{"parallel", ArrayRef(T.Parallel)},
      std::pair{"accesses", TensorRef(T.Accesses, {T.NumAccesses, 3})},
      std::pair{"strides", TensorRef(T.Strides, {T.NumAccesses, N})},
      std::pair{"operations", ArrayRef(T.Counts)},
      std::pair{"choices", TensorRef(T.Choices, {C, 2 * N + 1})},
      std::pair{"choice_features", TensorRef(T.Features, {C, NumColumns})});
  auto Reply = Runner->tryEvaluate<std::vector<std::int64_t>>();
  if (Reply)
    return choiceOf(*Reply, Nest, Failure);
  const Error E = Reply.takeError();
  if (E.code() != ErrorCode::Deferred)
    Failure = E.str();
  return TilingChoice::leave(N);
}

} // namespace MLBridge
