//===- ONNXModelRunnerTest.cpp - In-process ONNX models -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests ONNXModelRunner: inputs and outputs of every type, shapes that change,
/// and the cost of an evaluation compared with the cost of ONNX Runtime alone.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/ONNXModelRunner.h"

#include "MLCompilerBridge/Training/Agent.h"
#include "ONNX/ONNXModel.h"
#include "support/AllocationCounter.h"
#include "support/Damage.h"
#include "support/ONNXTest.h"

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {
using ONNXModelRunnerTest = ONNXTest;

constexpr ElementType AllTypes[] = {
    ElementType::Int8,   ElementType::Int16,  ElementType::Int32,
    ElementType::Int64,  ElementType::UInt8,  ElementType::UInt16,
    ElementType::UInt32, ElementType::UInt64, ElementType::Float,
    ElementType::Double, ElementType::Bool,   ElementType::String};

/// A model with an input of each type, and an equal output for each input.
ONNXWriter identity(bool IsVector) {
  ONNXWriter Writer;
  for (ElementType Type : AllTypes) {
    const std::string Name(elementTypeName(Type));
    std::vector<ONNXWriter::Extent> Extents;
    if (IsVector)
      Extents.emplace_back("n of " + Name);
    Writer.input(Name, Type, Extents)
        .node("Identity", {Name}, {Name + " out"})
        .output(Name + " out", Type, Extents);
  }
  return Writer;
}

void expectEcho(MLModelRunner &Runner, const FeatureSet &Features) {
  ASSERT_FALSE(Features.error()) << Features.error().str();
  Expected<Advice> Reply = Runner.ask(Features, AdviceSpec::any());
  ASSERT_TRUE(Reply) << Reply.message();
  ASSERT_EQ(Reply->size(), Features.size());
  for (const TensorView &Sent : Features.tensors()) {
    const TensorView *Back = Reply->find(std::string(Sent.Name) + " out");
    ASSERT_TRUE(Back);
    ASSERT_EQ(Sent.typeStr(), Back->typeStr());
    ASSERT_EQ(Sent.NumBytes, Back->NumBytes);
    ASSERT_TRUE(std::ranges::equal(Sent.Lengths, Back->Lengths));
    ASSERT_TRUE(std::ranges::equal(Sent.bytes(), Back->bytes())) << Sent.Name;
  }
}
} // namespace

TEST_F(ONNXModelRunnerTest, ScalarsOfEveryType) {
  ONNXModelRunner Runner(write(identity(false)), {}, Options);
  auto Ask = [&](auto Pick, bool Yes, std::string_view Text) {
    FeatureSet Features;
    Features.set("string", Text);
    Features.set("bool", Yes);
    auto Set = [&](auto Zero) {
      using T = decltype(Zero);
      Features.set(elementTypeName(*elementTypeOf<T>()),
                   Pick(std::numeric_limits<T>()));
    };
    Set(std::int8_t()), Set(std::int16_t()), Set(std::int32_t());
    Set(std::int64_t()), Set(std::uint8_t()), Set(std::uint16_t());
    Set(std::uint32_t()), Set(std::uint64_t()), Set(float()), Set(double());
    expectEcho(Runner, Features);
  };
  Ask([](auto Limits) { return Limits.max(); }, true, "text");
  Ask([](auto Limits) { return Limits.lowest(); }, false, "");
  Ask([](auto Limits) { return Limits.denorm_min(); }, true,
      "a longer text than before, \u00fc\u4e16\U0001f600");
  Ask([](auto Limits) { return Limits.quiet_NaN(); }, false, "t");
}

TEST_F(ONNXModelRunnerTest, VectorsOfEveryTypeAndLength) {
  ONNXModelRunner Runner(write(identity(true)), {}, Options);
  // Short vectors are copied, long vectors are not. Each length is used twice,
  // because the second request uses the cached tensor.
  for (std::size_t Length :
       {3, 0, 1, 1, 64, 1000, 1000, 40'000, 40'000, 7, 20'000}) {
    SCOPED_TRACE(Length);
    FeatureSet Features;
    auto Set = [&](auto Zero) {
      using T = decltype(Zero);
      std::vector<T> Values(Length);
      for (std::size_t I = 0; I < Length; ++I)
        Values[I] = static_cast<T>(I * 2654435761u);
      Features.set(elementTypeName(*elementTypeOf<T>()), Values);
    };
    Set(std::int8_t()), Set(std::int16_t()), Set(std::int32_t());
    Set(std::int64_t()), Set(std::uint8_t()), Set(std::uint16_t());
    Set(std::uint32_t()), Set(std::uint64_t()), Set(float()), Set(double());
    std::vector<bool> Bools(Length);
    std::vector<std::string> Strings(Length);
    for (std::size_t I = 0; I < Length; ++I) {
      Bools[I] = I % 3 == 0;
      Strings[I] = std::string(I % 40, 'x') + std::to_string(I % 7);
    }
    if (Length > 2)
      Strings[1].clear(), Strings[Length - 1].clear();
    Features.set("bool", Bools);
    Features.set("string", Strings);
    expectEcho(Runner, Features);
    expectEcho(Runner, Features);
  }
}

TEST_F(ONNXModelRunnerTest, FollowsMemoryThatMovesAndChanges) {
  // A tensor of this length is not copied.
  constexpr std::int64_t N = 10'000;
  ONNXWriter Writer;
  Writer.input("x", ElementType::Float, {N})
      .node("ReduceSum", {"x"}, {"out"}, {{"keepdims", 0}})
      .output("out", ElementType::Float, {});
  ONNXModelRunner Runner(write(Writer), {}, Options);
  std::vector<float> A(N, 1), B(N, 2);
  std::vector<char> Bytes(N * sizeof(float) + 1);
  auto Ask = [&](const float *Data) {
    FeatureSet Features;
    TensorView View{"", ElementType::Float, {N}, Data, N * sizeof(float), {}};
    Features.set("x", View);
    Expected<Advice> Reply = Runner.ask(Features, AdviceSpec::any());
    return Reply ? *Reply->get<float>() : std::nanf("");
  };
  EXPECT_EQ(Ask(A.data()), N);
  A[0] = 11;
  EXPECT_EQ(Ask(A.data()), N + 10) << "the same memory with another value";
  EXPECT_EQ(Ask(B.data()), 2 * N);
  A[0] = 1;
  EXPECT_EQ(Ask(A.data()), N);
  // The data now have an address that is not aligned for floats.
  std::memcpy(Bytes.data() + 1, B.data(), N * sizeof(float));
  EXPECT_EQ(Ask(reinterpret_cast<const float *>(Bytes.data() + 1)), 2 * N);
  EXPECT_EQ(Ask(A.data()), N);
}

TEST_F(ONNXModelRunnerTest, GraphsOfAnyNumberOfNodes) {
  // One step of message passing: relu(A X W), summed over the nodes.
  ONNXWriter Writer;
  Writer.input("nodes", ElementType::Float, {"n", 2})
      .input("adjacent", ElementType::Float, {"n", "n"})
      .constant("w", {2, 3}, std::vector<float>{1, -1, 2, 3, 1, -2})
      .node("MatMul", {"adjacent", "nodes"}, {"messages"})
      .node("MatMul", {"messages", "w"}, {"mixed"})
      .node("Relu", {"mixed"}, {"states"})
      .output("states", ElementType::Float, {"n", 3});
  ONNXModelRunner Runner(write(Writer), {}, Options);
  for (std::size_t N : {1, 4, 4, 50, 2, 0, 17}) {
    std::vector<float> Nodes(2 * N), Adjacent(N * N);
    for (std::size_t I = 0; I < Nodes.size(); ++I)
      Nodes[I] = float(int(I * 7 % 5) - 2);
    for (std::size_t I = 0; I < Adjacent.size(); ++I)
      Adjacent[I] = float(I * I % 3 == 1);
    const auto Extent = std::int64_t(N);
    for (int Round = 0; Round < 2; ++Round) {
      Runner.populateFeatures(
          std::pair{"adjacent", TensorRef(Adjacent, {Extent, Extent})},
          std::pair{"nodes", TensorRef(Nodes, {Extent, 2})});
      Expected<Advice> Reply = Runner.tryEvaluate<Advice>();
      ASSERT_TRUE(Reply) << Reply.message();
      const TensorView &States = Reply->tensors()[0];
      ASSERT_EQ(States.Dims, Shape({Extent, 3}));
      auto Values = *States.as<float>();
      const float W[2][3] = {{1, -1, 2}, {3, 1, -2}};
      for (std::size_t I = 0; I < N; ++I)
        for (std::size_t K = 0; K < 3; ++K) {
          float Sum = 0;
          for (std::size_t J = 0; J < N; ++J)
            for (std::size_t C = 0; C < 2; ++C)
              Sum += Adjacent[I * N + J] * Nodes[J * 2 + C] * W[C][K];
          EXPECT_EQ(Values[I * 3 + K], std::max(Sum, 0.0f));
        }
    }
  }
  std::vector<float> Data(12);
  Runner.populateFeatures(
      std::pair{"nodes", TensorRef(Span<const float>(Data.data(), 6), {3, 2})},
      std::pair{"adjacent", TensorRef(Data, {3, 4})});
  EXPECT_EQ(
      Runner.tryEvaluate<Advice>().message(),
      "onnx:" + path("m.onnx") +
          ": feature 'adjacent': expected float[?,?], found float[3,4]: "
          "its extent 1 must be extent 0 of 'nodes', which is float[3,2]");
}

TEST_F(ONNXModelRunnerTest, OutputsWhoseShapeDependsOnValues) {
  ONNXWriter Writer;
  Writer.input("x", ElementType::Float, {4})
      .node("NonZero", {"x"}, {"where"})
      .output("where", ElementType::Int64, {1, "count"});
  ONNXModelRunner Runner(write(Writer), {}, Options);
  auto Ask = [&](std::vector<float> X) {
    Runner.populateFeatures(std::pair{"x", X});
    return Runner.evaluate<std::vector<std::int64_t>>();
  };
  EXPECT_THAT(Ask({1, 0, 1, 0}), ElementsAre(0, 2));
  EXPECT_THAT(Ask({0, 1, 1, 0}), ElementsAre(1, 2));
  EXPECT_THAT(Ask({1, 1, 1, 1}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Ask({0, 0, 0, 0}), ElementsAre());
  EXPECT_THAT(Ask({0, 0, 0, 5}), ElementsAre(3));
}

TEST_F(ONNXModelRunnerTest, DecidesAsTheModelSays) {
  ONNXWriter Writer;
  Writer.input("x", ElementType::Float, {"batch", 3})
      .node("Identity", {"x"}, {"logits"})
      .node("ReduceMax", {"x"}, {"value"}, {{"keepdims", 0}})
      .output("logits", ElementType::Float, {"batch", 3})
      .output("value", ElementType::Float, {})
      .metadata("mlbridge.decide", "argmax:logits")
      .metadata("mlbridge.finite", "true");
  const std::string File = write(Writer);
  auto Ask = [&](const std::string &Spec, std::array<float, 3> X) {
    auto Runner = Factory.create(Spec);
    EXPECT_TRUE(Runner) << Runner.message();
    (*Runner)->populateFeatures(std::pair{"x", X});
    Expected<float> Reply = (*Runner)->tryEvaluate<float>();
    return Reply ? std::to_string(*Reply) : std::string(Reply.message());
  };
  EXPECT_EQ(Ask("onnx:" + File, {1, 5, 2}), "1.000000");
  EXPECT_EQ(Ask("onnx:" + File + "?output=value", {1, 5, 2}), "5.000000");
  EXPECT_THAT(Ask("onnx:" + File, {1, NAN, 2}), HasSubstr("expected finite"));
  EXPECT_EQ(Ask("onnx:" + File + "?decide=sample&seed=3", {1, 99, 2}),
            "1.000000");
  Expected<std::shared_ptr<const Model>> M = loadONNXModel(File, Options);
  ASSERT_TRUE(M);
  EXPECT_EQ(*(*M)->metadata("mlbridge.finite"), "true");
  EXPECT_EQ((*M)->metadata("mlbridge.features"), nullptr);
  EXPECT_EQ((*M)->inputs()[0].typeStr(), "float[?,3]");
}

TEST_F(ONNXModelRunnerTest, UnsupportedOutputsAreLeftOut) {
  ONNXWriter Writer;
  Writer.input("x", ElementType::Float, {2})
      .node("SequenceConstruct", {"x", "x"}, {"both"})
      .node("ReduceSum", {"x"}, {"sum"}, {{"keepdims", 0}})
      .sequenceOutput("both", ElementType::Float)
      .output("sum", ElementType::Float, {});
  ONNXModelRunner Runner(write(Writer), {}, Options);
  Runner.populateFeatures(std::pair{"x", std::array{1.0f, 2.0f}});
  EXPECT_EQ(Runner.evaluate<float>(), 3);
}

namespace {
/// The agents "up" and "down" take turns adding their actions to x, which
/// starts at 3.
class Ladder : public Environment {
public:
  Error reset(FeatureSet &Observation) override {
    X = 3;
    Steps = 0;
    return observe(Observation);
  }
  Error step(const Advice &Action, FeatureSet &Observation) override {
    Expected<float> To = Action.get<float>();
    if (!To)
      return To.takeError();
    X = *To;
    setDone(++Steps == 6);
    return observe(Observation);
  }
  double reward() const override { return X; }

private:
  Error observe(FeatureSet &Observation) {
    setNextAgent(Steps % 2 == 0 ? "up" : "down");
    Observation.set("x", X);
    return Error::success();
  }
  float X = 0;
  int Steps = 0;
};
} // namespace

TEST_F(ONNXModelRunnerTest, AgentsPlayAnEnvironment) {
  ONNXModelRunner Runner(
      {{"up", write(add(5), "up.onnx")}, {"down", write(add(-2), "down.onnx")}},
      {}, Options);
  Ladder Env;
  Expected<double> Return = runEpisode(Env, Runner);
  ASSERT_TRUE(Return) << Return.message();
  EXPECT_EQ(*Return, 8 + 6 + 11 + 9 + 14 + 12);
  // As in the paper, each agent has its own runner.
  ONNXModelRunner Up(path("up.onnx"), {}, Options);
  ONNXModelRunner Down(path("down.onnx"), {}, Options);
  RunnerAgent UpAgent(Up), DownAgent(Down);
  EXPECT_EQ(*runEpisode(Env, {{"up", &UpAgent}, {"down", &DownAgent}}), 60);
}

TEST_F(ONNXModelRunnerTest, EightThreadsAskOneModel) {
  const std::string Spec = "onnx:" + write(add(1));
  std::atomic<int> Right = 0;
  std::vector<std::thread> Threads;
  for (int T = 0; T < 8; ++T)
    Threads.emplace_back([&, T] {
      auto Runner = RunnerFactory(Factory).create(Spec);
      for (int I = 0; I < 2000; ++I) {
        (*Runner)->populateFeatures(std::pair{"x", float(I * 8 + T)});
        Expected<float> Reply = (*Runner)->tryEvaluate<float>();
        Right += Reply && *Reply == float(I * 8 + T + 1);
      }
    });
  for (std::thread &Thread : Threads)
    Thread.join();
  EXPECT_EQ(Right, 8 * 2000);
}

#ifdef MLBRIDGE_TEST_MODULES
TEST_F(ONNXModelRunnerTest, ComesFromAModuleIfNotLinked) {
  ASSERT_EQ(::setenv("MLBRIDGE_MODULES", MLBRIDGE_TEST_MODULES, 1), 0);
  std::string Spec = "onnx:" + write(add(1));
  if (!Options.Runtime.empty())
    Spec += "?runtime=" + Options.Runtime;
  auto Runner = createModelRunner(Spec);
  ASSERT_TRUE(Runner) << Runner.message();
  (*Runner)->populateFeatures(std::pair{"x", 2.0f});
  Expected<float> Reply = (*Runner)->tryEvaluate<float>();
  ASSERT_TRUE(Reply) << Reply.message();
  EXPECT_EQ(*Reply, 3);
}

TEST_F(ONNXModelRunnerTest, RunnersOfItsModuleShareAModel) {
  ASSERT_EQ(::setenv("MLBRIDGE_MODULES", MLBRIDGE_TEST_MODULES, 1), 0);
  const std::string File = write(add(1));
  std::string Spec = "onnx:" + File;
  if (!Options.Runtime.empty())
    Spec += "?runtime=" + Options.Runtime;
  const RunnerFactory WithoutONNX;
  auto Ask = [&](const RunnerFactory &By) -> Expected<float> {
    auto Runner = By.create(Spec);
    if (!Runner)
      return Runner.takeError();
    (*Runner)->populateFeatures(std::pair{"x", 2.0f});
    return (*Runner)->tryEvaluate<float>();
  };
  Expected<float> First = Ask(WithoutONNX);
  ASSERT_TRUE(First) << First.message();
  // If the factory read the file again, it would now fail.
  damageUnseen(File);
  Expected<float> Second = Ask(RunnerFactory(WithoutONNX));
  ASSERT_TRUE(Second) << Second.message();
  EXPECT_EQ(*Second, 3);
  EXPECT_EQ(Ask(RunnerFactory()).code(), ErrorCode::Malformed);
}
#endif

/// After the first requests, only ONNX Runtime's Run allocates memory.
TEST_F(ONNXModelRunnerTest, AllocatesNothingOfItsOwn) {
  ONNXWriter Writer;
  Writer.input("x", ElementType::Float, {1, 500})
      .input("y", ElementType::Float, {1, 10'000})
      .input("hot", ElementType::Bool, {})
      .node("ReduceSum", {"x"}, {"a"}, {{"keepdims", 0}})
      .node("ReduceSum", {"y"}, {"b"}, {{"keepdims", 0}})
      .node("Where", {"hot", "a", "b"}, {"out"})
      .output("out", ElementType::Float, {});
  const std::string File = write(Writer);
  std::vector<float> X(500, 1), Y(10'000, 1);

  // Count ONNX Runtime's own allocations, with existing tensors.
  Expected<std::shared_ptr<const Model>> Loaded = loadONNXModel(File, Options);
  ASSERT_TRUE(Loaded);
  const auto &M = static_cast<const onnx::ONNXModel &>(**Loaded);
  const OrtApi &API = M.runtime().api();
  auto Tensor = [&](void *Data, std::size_t NumBytes,
                    std::vector<std::int64_t> Dims, ElementType Type) {
    OrtValue *Value = nullptr;
    EXPECT_EQ(API.CreateTensorWithDataAsOrtValue(
                  M.runtime().memory(), Data, NumBytes, Dims.data(),
                  Dims.size(), onnx::toONNX(Type), &Value),
              nullptr);
    return onnx::Handle<OrtValue>(Value, onnx::Release{&API});
  };
  bool Hot = true;
  float Out = 0;
  auto XTensor = Tensor(X.data(), 2000, {1, 500}, ElementType::Float);
  auto YTensor = Tensor(Y.data(), 40'000, {1, 10'000}, ElementType::Float);
  auto HotTensor = Tensor(&Hot, 1, {}, ElementType::Bool);
  auto OutTensor = Tensor(&Out, 4, {}, ElementType::Float);
  const char *Names[] = {"x", "y", "hot"}, *OutNames[] = {"out"};
  const OrtValue *Values[] = {XTensor.get(), YTensor.get(), HotTensor.get()};
  OrtRunOptions *RunOptions = nullptr;
  ASSERT_EQ(API.CreateRunOptions(&RunOptions), nullptr);
  onnx::Handle<OrtRunOptions> Owned(RunOptions, onnx::Release{&API});
  const std::size_t Floor = allocationsOnceWarm([&] {
    OrtValue *Result = OutTensor.get();
    EXPECT_EQ(API.Run(M.session(), RunOptions, Names, Values, 3, OutNames, 1,
                      &Result),
              nullptr);
  });

  ONNXModelRunner Runner(File, {}, Options);
  EXPECT_LE(allocationsOnceWarm([&] {
              Runner.populateFeatures(std::pair{"hot", false},
                                      std::pair{"y", Span<const float>(Y)},
                                      std::pair{"x", Span<const float>(X)});
              EXPECT_EQ(Runner.evaluate<float>(), 10'000);
            }),
            Floor);
}
