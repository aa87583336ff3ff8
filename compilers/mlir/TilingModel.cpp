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

static RunnerFactory makeFactory() {
  RunnerFactory Factory;
#ifdef MLBRIDGE_HAS_ONNX
  addONNX(Factory);
#endif
  Factory.setConnectTimeout(std::chrono::seconds(5));
  return Factory;
}

Expected<std::unique_ptr<TilingModel>> TilingModel::open(StringRef Spec) {
  // Passes of several threads share the in-process models. The factory is never
  // destroyed, because the models' libraries may be unloaded before it.
  static const RunnerFactory &Factory = *new RunnerFactory(makeFactory());
  Expected<std::unique_ptr<MLModelRunner>> Runner =
      Factory.create(std::string_view(Spec));
  if (!Runner)
    return Runner.takeError();
  return std::unique_ptr<TilingModel>(new TilingModel(std::move(*Runner)));
}

/// Converts a reply, int64[2n+1]: n tile sizes, the order, the unroll factor.
static Expected<TilingChoice> choiceOf(ArrayRef<std::int64_t> Reply,
                                       const LoopNest &Nest) {
  const size_t N = Nest.size();
  auto Mismatch = [](const Twine &Why) {
    return Error(ErrorCode::SchemaMismatch,
                 "the advice is not a tiling: " + Why.str());
  };
  if (Reply.size() != 2 * N + 1)
    return Mismatch(formatv("expected {0} numbers for {1} loops, found {2}",
                            2 * N + 1, N, Reply.size()));
  TilingChoice Choice;
  Choice.Tiles.assign(Reply.begin(), Reply.begin() + N);
  for (std::int64_t Loop : Reply.slice(N, N))
    Choice.Order.push_back(Loop < 0 || Loop >= std::int64_t(N) ? N : Loop);
  Choice.Unroll = Reply.back();
  if (std::optional<std::string> Why = Nest.illegal(Choice))
    return Mismatch(*Why);
  return Choice;
}

Expected<TilingChoice> TilingModel::choose(const LoopNest &Nest,
                                           StringRef Function) {
  const NestTensors Tensors(Nest);
  const std::int64_t Loops = Nest.size(), Choices = Tensors.NumChoices;
  Runner->switchContext(std::string_view(Function));
  Runner->populateFeatures(
      std::pair{"trip_counts", ArrayRef(Nest.TripCounts)},
      std::pair{"parallel", ArrayRef(Tensors.Parallel)},
      std::pair{"strides",
                TensorRef(Tensors.Strides, {Tensors.NumAccesses, Loops})},
      std::pair{"element_bytes", ArrayRef(Tensors.ElementBytes)},
      std::pair{"memory", ArrayRef(Tensors.Memory)},
      std::pair{"writes", ArrayRef(Tensors.Writes)},
      std::pair{"operations", ArrayRef(Tensors.Counts)},
      std::pair{"choices",
                TensorRef(Tensors.Choices, {Choices, 2 * Loops + 1})},
      std::pair{"choice_features",
                TensorRef(Tensors.Features, {Choices, NumChoiceFeatures})});
  Expected<std::vector<std::int64_t>> Reply =
      Runner->tryEvaluate<std::vector<std::int64_t>>();
  if (Reply)
    return choiceOf(*Reply, Nest);
  Error E = Reply.takeError();
  if (E.code() == ErrorCode::Deferred)
    return TilingChoice::leave(Nest.size());
  return E;
}

} // namespace MLBridge
