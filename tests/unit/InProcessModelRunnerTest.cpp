//===- InProcessModelRunnerTest.cpp - In-process models -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests InProcessModelRunner: the features that a model gets, the processing
/// of its outputs, and the errors.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/InProcessModelRunner.h"

#include "FunctionModel.h"
#include "MLCompilerBridge/Training/Agent.h"
#include "support/AllocationCounter.h"
#include "support/Child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

static constexpr std::int64_t Any = TensorSpec::AnyExtent;
using Rule = DecisionOptions::Rule;

/// Returns the inputs under their own names.
static Error echo(Span<const TensorView> Inputs, FeatureSet &Out) {
  for (const TensorView &Input : Inputs)
    Out.set(Input.Name, Input);
  return Error::success();
}

static std::shared_ptr<const Model> echoModel(std::vector<TensorSpec> Specs,
                                              Model::Metadata About = {}) {
  std::vector<TensorSpec> Outputs = Specs;
  return std::make_shared<FunctionModel>(
      "echo:m", std::move(Specs), std::move(Outputs), echo, std::move(About));
}

static InProcessModelRunner runnerOf(std::shared_ptr<const Model> M,
                                     const DecisionOptions &Options = {}) {
  InProcessModelRunner::LoadMap Loads;
  Loads[""] = [M] { return M; };
  return {"echo:m", std::move(Loads), Options};
}

/// The error of a request with \p Features.
template <typename... Ts>
static std::string failure(InProcessModelRunner &Runner, ErrorCode Code,
                           const Ts &...Features) {
  Runner.populateFeatures(Features...);
  Expected<Advice> Reply = Runner.tryEvaluate<Advice>();
  EXPECT_EQ(Reply.code(), Code) << Reply.message();
  return std::string(Reply.message());
}

//===----------------------------------------------------------------------===//
// Processes
//===----------------------------------------------------------------------===//

TEST(InProcessModelRunnerTest, AChildDestroysNothingOfItsParents) {
  InProcessModelRunner::LoadMap Loads;
  // If a process destroys a FunctionModel of another process, the process ends
  // with status 9.
  Loads[""] = [] { return echoModel({{"a", ElementType::Int32, {}}}); };
  auto Runner = std::make_unique<InProcessModelRunner>("echo:m", Loads);
  auto Ask = [&](int X) {
    Runner->populateFeatures(std::pair{"a", X});
    return *Runner->tryEvaluate<int>();
  };
  EXPECT_EQ(Ask(1), 1);
  Child Unused([&] {
    Runner.reset();
    return 0;
  });
  EXPECT_EQ(Unused.wait(), 0);
  Child Used([&] {
    const bool IsRight = Ask(2) == 2;
    Runner.reset();
    return IsRight ? 0 : 1;
  });
  EXPECT_EQ(Used.wait(), 0);
  EXPECT_EQ(Ask(3), 3);
}

//===----------------------------------------------------------------------===//
// Features
//===----------------------------------------------------------------------===//

TEST(InProcessModelRunnerTest, GivesTheModelItsInputs) {
  InProcessModelRunner Runner =
      runnerOf(echoModel({{"a", ElementType::Int32, {}},
                          {"b", ElementType::Float, {2}},
                          {"text", ElementType::String, {}}}));
  // Between the requests, the order of the features and the additional features
  // change.
  const std::array B{1.0f, 2.0f};
  for (int Round = 0; Round < 3; ++Round) {
    if (Round == 1)
      Runner.populateFeatures(std::pair{"other", 5}, std::pair{"a", Round},
                              std::pair{"text", "x"}, std::pair{"b", B});
    else
      Runner.populateFeatures(std::pair{"b", B}, std::pair{"text", "x"},
                              std::pair{"another", 5}, std::pair{"a", Round});
    Expected<Advice> Reply = Runner.tryEvaluate<Advice>();
    ASSERT_TRUE(Reply) << Reply.message();
    ASSERT_EQ(Reply->size(), 3u);
    EXPECT_EQ(Reply->tensors()[0].Name, "a") << "in the model's order";
    EXPECT_EQ(*Reply->get<int>("a"), Round);
    EXPECT_THAT(*Reply->get<std::vector<float>>("b"), ElementsAre(1, 2));
    EXPECT_EQ(*Reply->get<std::string>("text"), "x");
  }
}

TEST(InProcessModelRunnerTest, PrependsExtentsOfOne) {
  InProcessModelRunner Runner =
      runnerOf(echoModel({{"scalar", ElementType::Float, {1}},
                          {"vector", ElementType::Float, {Any, 3}},
                          {"word", ElementType::String, {Any}},
                          {"cell", ElementType::String, {Any, 1}}}));
  const std::array Vector{1.0f, 2.0f, 3.0f};
  // The text grows, because the runner caches its length and must notice the
  // change.
  for (std::string Word : {"a", "bcd"}) {
    Runner.populateFeatures(std::pair{"scalar", 1.5f},
                            std::pair{"vector", Vector},
                            std::pair{"word", Word}, std::pair{"cell", Word});
    Expected<Advice> Reply = Runner.tryEvaluate<Advice>();
    // A list of strings with rank 2 must not fail the request.
    ASSERT_EQ(Reply.code(), ErrorCode::Success) << Reply.message();
    EXPECT_EQ(Reply->find("scalar")->Dims, Shape({1}));
    EXPECT_EQ(Reply->find("vector")->Dims, Shape({1, 3}));
    EXPECT_THAT(*Reply->get<std::vector<std::string>>("word"),
                ElementsAre(Word));
  }
}

TEST(InProcessModelRunnerTest, AMissingFeaturesErrorNamesTheOthers) {
  InProcessModelRunner Runner =
      runnerOf(echoModel({{"embedding", ElementType::Float, {Any, 300}}}));
  EXPECT_EQ(failure(Runner, ErrorCode::SchemaMismatch,
                    std::pair{"callee_size", 3}, std::pair{"hot", true}),
            "echo:m: expected a feature 'embedding' float[?,300], found none "
            "of that name among 'callee_size' int32_t, 'hot' bool");
  EXPECT_THAT(failure(Runner, ErrorCode::SchemaMismatch),
              HasSubstr("among none"));
  FeatureSet Many;
  for (int I = 0; I < 100; ++I)
    Many.set("feature " + std::to_string(I), I);
  Expected<Advice> Reply = Runner.ask(Many, AdviceSpec::any());
  EXPECT_THAT(std::string(Reply.message()),
              AllOf(HasSubstr("'feature 4' int32_t and 95 more"),
                    Not(HasSubstr("feature 5"))));
}

TEST(InProcessModelRunnerTest, TypesRanksAndExtentsAreChecked) {
  InProcessModelRunner Runner =
      runnerOf(echoModel({{"x", ElementType::Float, {2, Any, 3}}}));
  std::vector<float> Data(24);
  auto Failure = [&](const auto &Value) {
    return failure(Runner, ErrorCode::SchemaMismatch, std::pair{"x", Value});
  };
  const std::string Wanted =
      "echo:m: feature 'x': expected float[2,?,3], found ";
  EXPECT_EQ(Failure(TensorRef(std::vector<double>(6), {2, 1, 3})),
            Wanted + "double[2,1,3]");
  EXPECT_EQ(Failure(std::string_view("text")), Wanted + "string");
  EXPECT_EQ(Failure(TensorRef(Data, {2, 4, 1, 3})), Wanted + "float[2,4,1,3]");
  EXPECT_EQ(Failure(TensorRef(Data, {2, 3, 4})), Wanted + "float[2,3,4]");
  // If the runner prepended an extent of 1, the shape would be [1,8,3].
  EXPECT_EQ(Failure(TensorRef(Data, {8, 3})), Wanted + "float[8,3]");

  // After failures, valid shapes must stay valid.
  for (Shape Right : {Shape{2, 4, 3}, Shape{2, 0, 3}, Shape{2, 1, 3}}) {
    std::size_t Count = *Right.numElements();
    Runner.populateFeatures(std::pair{
        "x", TensorRef(Span<const float>(Data.data(), Count), Right)});
    Expected<Advice> Reply = Runner.tryEvaluate<Advice>();
    ASSERT_TRUE(Reply) << Reply.message();
    EXPECT_EQ(Reply->tensors()[0].Dims, Right);
    EXPECT_EQ(Failure(TensorRef(Data, {2, 3, 4})), Wanted + "float[2,3,4]");
  }
}

TEST(InProcessModelRunnerTest, ExtentsOfOneNameMustBeEqual) {
  constexpr std::int64_t N = -2, E = -3;
  InProcessModelRunner Runner =
      runnerOf(echoModel({{"nodes", ElementType::Float, {N, 2}},
                          {"edges", ElementType::Int64, {2, E}},
                          {"adjacent", ElementType::UInt8, {N, N}}}));
  std::vector<float> Nodes(20);
  std::vector<std::int64_t> Edges(20);
  std::vector<std::uint8_t> Adjacent(100);
  auto Ask = [&](std::int64_t Ns, std::int64_t Es, std::int64_t A,
                 std::int64_t B) {
    auto Part = [](const auto &Data, Shape Dims) {
      return TensorRef(Span(Data.data(), *Dims.numElements()), Dims);
    };
    Runner.populateFeatures(
        std::pair{"nodes", Part(std::as_const(Nodes), {Ns, 2})},
        std::pair{"edges", Part(std::as_const(Edges), {2, Es})},
        std::pair{"adjacent", Part(std::as_const(Adjacent), {A, B})});
    Expected<Advice> Reply = Runner.tryEvaluate<Advice>();
    EXPECT_EQ(Reply.code() == ErrorCode::SchemaMismatch, !Reply);
    return std::string(Reply.message());
  };
  EXPECT_EQ(Ask(4, 7, 4, 4), "");
  EXPECT_EQ(Ask(5, 7, 5, 5), "");
  EXPECT_EQ(Ask(5, 3, 5, 4),
            "echo:m: feature 'adjacent': expected uint8_t[?,?], found "
            "uint8_t[5,4]: its extent 1 must be extent 0 of 'nodes', which is "
            "float[5,2]");
  EXPECT_THAT(Ask(5, 3, 5, 4), HasSubstr("its extent 1")) << "the second time";
  EXPECT_THAT(Ask(6, 3, 5, 5), HasSubstr("extent 0 of 'nodes'"));
  EXPECT_EQ(Ask(5, 3, 5, 5), "");
}

TEST(InProcessModelRunnerTest, RefusesNaNAndInfinitiesOnDemand) {
  const std::vector<TensorSpec> Specs{{"x", ElementType::Float, {Any}},
                                      {"y", ElementType::Double, {}}};
  DecisionOptions Refuse, Allow;
  Refuse.RefuseNonFinite = true;
  Allow.RefuseNonFinite = false;
  const Model::Metadata Finite{{"mlbridge.finite", "true"}};
  InProcessModelRunner ByOption = runnerOf(echoModel(Specs), Refuse);
  InProcessModelRunner ByModel = runnerOf(echoModel(Specs, Finite));
  InProcessModelRunner Overruled = runnerOf(echoModel(Specs, Finite), Allow);
  InProcessModelRunner Default = runnerOf(echoModel(Specs));
  for (double Bad : {std::nan(""), HUGE_VAL, -HUGE_VAL})
    for (std::size_t At : {0, 7, 98}) {
      std::vector<float> X(99, std::numeric_limits<float>::max());
      X[At] = static_cast<float>(Bad);
      for (InProcessModelRunner *Runner : {&ByOption, &ByModel}) {
        EXPECT_EQ(failure(*Runner, ErrorCode::SchemaMismatch,
                          std::pair{"x", Span<const float>(X)},
                          std::pair{"y", 1.0}),
                  "echo:m: feature 'x' float[99]: expected finite numbers, "
                  "found NaN or an infinity at element " +
                      std::to_string(At));
        X[At] = -0.0f;
        EXPECT_THAT(failure(*Runner, ErrorCode::SchemaMismatch,
                            std::pair{"x", Span<const float>(X)},
                            std::pair{"y", Bad}),
                    HasSubstr("feature 'y' double: expected finite"));
        EXPECT_EQ(failure(*Runner, ErrorCode::Success,
                          std::pair{"x", Span<const float>(X)},
                          std::pair{"y", 5e-324}),
                  "");
        X[At] = static_cast<float>(Bad);
      }
      for (InProcessModelRunner *Runner : {&Overruled, &Default})
        EXPECT_EQ(failure(*Runner, ErrorCode::Success,
                          std::pair{"x", Span<const float>(X)},
                          std::pair{"y", Bad}),
                  "");
    }
}

TEST(InProcessModelRunnerTest, FeaturesWithoutAGraphInputAreRequired) {
  InProcessModelRunner Runner =
      runnerOf(echoModel({{"x", ElementType::Float, {Any, 2}}},
                         {{"mlbridge.features",
                           R"([{"name": "x", "type": "float", "shape": [2]},
            {"name": "pruned", "type": "int64_t", "shape": ["n", 2, null]}])"}}));
  const std::array X{1.0f, 2.0f};
  EXPECT_THAT(failure(Runner, ErrorCode::SchemaMismatch, std::pair{"x", X}),
              HasSubstr("expected a feature 'pruned' int64_t[?,2,?], found "));
  EXPECT_THAT(failure(Runner, ErrorCode::SchemaMismatch, std::pair{"x", X},
                      std::pair{"pruned", 5}),
              HasSubstr("'pruned': expected int64_t[?,2,?], found int32_t"));
  const std::vector<std::int64_t> Pruned{1, 2, 3, 4};
  Runner.populateFeatures(std::pair{"pruned", TensorRef(Pruned, {2, 2})},
                          std::pair{"x", X});
  Expected<Advice> Reply = Runner.tryEvaluate<Advice>();
  ASSERT_TRUE(Reply) << Reply.message();
  EXPECT_EQ(Reply->size(), 1u) << "the model sees its inputs only";
}

TEST(InProcessModelRunnerTest, InvalidMetadataIsAnError) {
  auto Failure = [](const char *Key, const char *Value) {
    InProcessModelRunner Runner =
        runnerOf(echoModel({{"x", ElementType::Float, {2}}}, {{Key, Value}}));
    return failure(Runner, ErrorCode::Malformed);
  };
  EXPECT_EQ(
      Failure("mlbridge.decide", "best"),
      "echo:m: its metadata 'mlbridge.decide': expected outputs, argmax "
      "or sample, optionally followed by a colon and the name of an output, "
      "found 'best'");
  EXPECT_THAT(Failure("mlbridge.finite", "1"),
              HasSubstr("expected true or false, found '1'"));
  auto Features = [&](const char *Text) {
    return Failure("mlbridge.features", Text);
  };
  EXPECT_THAT(Features("[{"), HasSubstr("expected a JSON list: "));
  EXPECT_THAT(Features("{}"), HasSubstr("expected a JSON list"));
  EXPECT_THAT(Features("[5]"), HasSubstr("to have a \"name\""));
  EXPECT_THAT(Features(R"([{"name": "y"}])"), HasSubstr("'y': expected a \"t"));
  EXPECT_THAT(Features(R"([{"name": "y", "type": "f", "shape": []}])"),
              HasSubstr("'y': unknown type 'f'"));
  EXPECT_THAT(Features(R"([{"name": "y", "type": "float"}])"),
              HasSubstr("'y': expected a \"shape\""));
  EXPECT_THAT(Features(R"([{"name": "y", "type": "float", "shape": [1.5]}])"),
              HasSubstr("'y': an extent is"));
  EXPECT_THAT(
      Features(R"([{"name":"y","type":"bool","shape":[1,1,1,1,1,1,1,1,1]}])"),
      HasSubstr("'y': expected a rank of at most 8"));
  EXPECT_THAT(Features(R"([{"name": "x", "type": "double", "shape": [2]}])"),
              HasSubstr("'x' is double[2], but the graph takes float[2]"));
}

TEST(InProcessModelRunnerTest, OnceWarmNoRequestAllocates) {
  DecisionOptions Options;
  Options.Decide = Rule::Sample;
  Options.Output = "scores";
  Options.Mask = "mask";
  Options.RefuseNonFinite = true;
  InProcessModelRunner Runner =
      runnerOf(echoModel({{"scores", ElementType::Float, {-2, 3}},
                          {"callee", ElementType::String, {1}},
                          {"size", ElementType::Int32, {-2}}}),
               Options);
  const std::array Scores{1.0f, 2.0f, 3.0f};
  const std::array Mask{true, false, true};
  EXPECT_EQ(allocationsOnceWarm([&] {
              Runner.populateFeatures(
                  std::pair{"size", 5}, std::pair{"scores", Scores},
                  std::pair{"callee", std::string_view("_ZN4llvm5ValueEv")},
                  std::pair{"mask", Mask});
              int Chosen = Runner.evaluate<int>();
              EXPECT_TRUE(Chosen == 0 || Chosen == 2);
            }),
            0u);
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

/// Asks a model whose output "logits" is a copy of its input "in", and which
/// has another output "value".
template <typename T>
static Expected<std::vector<std::int64_t>>
decide(DecisionOptions Options, const T &Scores,
       const std::vector<std::uint8_t> &Mask = {}, Model::Metadata About = {},
       std::optional<Shape> MaskDims = {}) {
  FeatureSet Features;
  Features.set("in", Scores);
  if (!Mask.empty())
    Features.set(
        "mask",
        TensorRef(Mask, MaskDims.value_or(Shape{std::int64_t(Mask.size())})));
  const TensorView &In = *Features.find("in");
  Shape Free;
  for (std::size_t I = 0; I < In.Dims.rank(); ++I)
    Free.push(Any);
  auto M = std::make_shared<FunctionModel>(
      "echo:m", std::vector<TensorSpec>{{"in", In.Type, Free}},
      std::vector<TensorSpec>{{"logits", In.Type, Free},
                              {"value", ElementType::Float, {}}},
      [](Span<const TensorView> Inputs, FeatureSet &Out) {
        Out.set("logits", Inputs[0]);
        Out.set("value", 0.5f);
        return Error::success();
      },
      std::move(About));
  InProcessModelRunner Runner = runnerOf(M, std::move(Options));
  Expected<Advice> Reply = Runner.ask(Features, AdviceSpec::any());
  if (!Reply)
    return Reply.takeError();
  return Reply->get<std::vector<std::int64_t>>();
}

static DecisionOptions rule(Rule R, std::string Mask = {}) {
  DecisionOptions Options;
  Options.Decide = R;
  Options.Output = "logits";
  Options.Mask = std::move(Mask);
  return Options;
}

TEST(DecisionTest, ArgMaxOfEveryTypeAndRow) {
  auto Of = [](const auto &Scores) {
    auto Choices = decide(rule(Rule::ArgMax), Scores);
    EXPECT_TRUE(Choices) << Choices.message();
    return Choices ? *Choices : std::vector<std::int64_t>();
  };
  EXPECT_THAT(Of(std::vector<float>{1, 3, 2}), ElementsAre(1));
  EXPECT_THAT(Of(std::vector<float>{-3, -1, -1}), ElementsAre(1))
      << "the first of equal scores";
  EXPECT_THAT(Of(std::vector<float>{-HUGE_VALF, -HUGE_VALF}), ElementsAre(0));
  EXPECT_THAT(Of(std::vector<bool>{false, true}), ElementsAre(1));
  EXPECT_THAT(Of(std::vector<std::int8_t>{-128, 127, 5}), ElementsAre(1));
  // Converted to double, these scores would be equal.
  const std::int64_t Big = std::int64_t(1) << 60;
  EXPECT_THAT(Of(std::vector<std::int64_t>{Big, Big + 1}), ElementsAre(1));
  const std::vector<double> Matrix{1, 2, 3, 6, 5, 4};
  EXPECT_THAT(Of(TensorRef(Matrix, {2, 3})), ElementsAre(2, 0));
  EXPECT_THAT(Of(TensorRef(Matrix, {1, 3, 2})), ElementsAre(1, 1, 0));
  EXPECT_THAT(Of(TensorRef(std::vector<float>(), {0, 3})), ElementsAre());
}

TEST(DecisionTest, AVectorOfScoresGivesAScalar) {
  InProcessModelRunner Runner = runnerOf(
      echoModel({{"logits", ElementType::Float, {3}}}), rule(Rule::ArgMax));
  Runner.populateFeatures(std::pair{"logits", std::vector<float>{1, 5, 2}});
  Expected<Advice> Reply = Runner.tryEvaluate<Advice>();
  ASSERT_TRUE(Reply) << Reply.message();
  EXPECT_EQ(Reply->tensors()[0].typeStr(), "int64_t");
  EXPECT_EQ(Reply->tensors()[0].Name, "logits");
}

TEST(DecisionTest, IllegalActionsAreNeverChosen) {
  const std::vector<float> Scores{9, 1, 5, 2, 3, 1};
  auto Masked = rule(Rule::ArgMax, "mask");
  EXPECT_THAT(*decide(Masked, Scores, {0, 1, 0, 1, 0, 0}), ElementsAre(3));
  EXPECT_THAT(*decide(Masked, TensorRef(Scores, {2, 3}), {0, 1, 0, 0, 0, 7}),
              ElementsAre(1, 2));
  // The scores of illegal actions need not even be comparable.
  const std::vector<float> Strange{NAN, HUGE_VALF, 1};
  EXPECT_THAT(*decide(Masked, Strange, {0, 0, 1}), ElementsAre(2));
  for (std::uint64_t Seed = 0; Seed < 100; ++Seed) {
    auto Sampled = rule(Rule::Sample, "mask");
    Sampled.Seed = Seed;
    EXPECT_THAT(*decide(Sampled, Strange, {0, 0, 1}), ElementsAre(2));
  }

  auto None = decide(Masked, Scores, {0, 0, 0, 0, 0, 0});
  EXPECT_EQ(None.code(), ErrorCode::SchemaMismatch);
  EXPECT_EQ(None.message(), "echo:m: output 'logits' float[6], row 0: the mask "
                            "leaves no legal action");
  auto Short = decide(Masked, Scores, {1, 1});
  EXPECT_EQ(Short.message(),
            "echo:m: the mask 'mask': expected a number or bool for each of 6 "
            "actions of output 'logits' float[6], found uint8_t[2]");
  auto Missing = decide(Masked, Scores);
  EXPECT_THAT(std::string(Missing.message()),
              HasSubstr("found no feature of that name among 'in' float[6]"));
}

TEST(DecisionTest, AMaskHasTheShapeOfItsScores) {
  const std::vector<float> Scores{9, 1, 5, 2, 3, 1};
  const std::vector<std::uint8_t> Mask{0, 1, 0, 1, 0, 0};
  auto Masked = rule(Rule::ArgMax, "mask");
  const TensorRef Table(Scores, {2, 3});
  EXPECT_THAT(*decide(Masked, Table, Mask, {}, Shape{2, 3}), ElementsAre(1, 0));
  EXPECT_THAT(*decide(Masked, Table, Mask, {}, Shape{1, 2, 3}),
              ElementsAre(1, 0))
      << "leading extents of 1 are ignored";
  EXPECT_THAT(*decide(Masked, Table, Mask), ElementsAre(1, 0)) << "a list";
  for (Shape Wrong : {Shape{3, 2}, Shape{6, 1}, Shape{1, 3, 2}})
    EXPECT_THAT(
        std::string(decide(Masked, Table, Mask, {}, Wrong).message()),
        HasSubstr("6 actions of output 'logits' float[2,3], found uint8_t" +
                  Wrong.str()));
}

TEST(DecisionTest, SamplesBySoftmaxAndSeed) {
  // The probabilities are 1/7, 2/7, 4/7 and 0.
  constexpr float Ln2 = std::numbers::ln2_v<float>;
  const std::vector<float> Scores{0, Ln2, 2 * Ln2, -HUGE_VALF};
  const std::size_t Rows = 7000;
  std::vector<float> Many;
  for (std::size_t I = 0; I < Rows; ++I)
    Many.insert(Many.end(), Scores.begin(), Scores.end());
  DecisionOptions Options = rule(Rule::Sample);
  Options.Seed = 42;
  TensorRef Matrix(Many, {std::int64_t(Rows), 4});
  auto First = decide(Options, Matrix);
  ASSERT_TRUE(First) << First.message();
  std::vector<int> Count(4);
  for (std::int64_t Choice : *First)
    ++Count[std::size_t(Choice)];
  // The tolerances are six standard deviations.
  EXPECT_NEAR(Count[0], 1000, 180);
  EXPECT_NEAR(Count[1], 2000, 230);
  EXPECT_NEAR(Count[2], 4000, 250);
  EXPECT_EQ(Count[3], 0);
  EXPECT_EQ(*decide(Options, Matrix), *First) << "the same seed";
  Options.Seed = 43;
  EXPECT_NE(*decide(Options, Matrix), *First);

  // exp() of this score is infinite.
  EXPECT_THAT(*decide(Options, std::vector<double>{1e308, 0}), ElementsAre(0));
}

TEST(DecisionTest, InvalidScoresAreAFailureOfTheModel) {
  for (Rule R : {Rule::ArgMax, Rule::Sample}) {
    auto NaN = decide(rule(R), std::vector<float>{1, NAN});
    EXPECT_EQ(NaN.code(), ErrorCode::Model);
    EXPECT_THAT(std::string(NaN.message()),
                HasSubstr("expected scores that can be compared, found NaN at "
                          "1"));
    auto Empty = decide(rule(R), std::vector<float>{});
    EXPECT_THAT(std::string(Empty.message()),
                HasSubstr("no actions to choose from"));
  }
  EXPECT_EQ(decide(rule(Rule::Sample), std::vector<float>{1, HUGE_VALF}).code(),
            ErrorCode::Model);
  EXPECT_EQ(decide(rule(Rule::Sample), std::vector<float>{-HUGE_VALF}).code(),
            ErrorCode::Model);
}

TEST(DecisionTest, RulesThatDoNotFitTheOutputsAreRefused) {
  auto Scalar = decide(rule(Rule::ArgMax), 1.5f);
  EXPECT_EQ(Scalar.code(), ErrorCode::SchemaMismatch);
  EXPECT_EQ(Scalar.message(), "echo:m: output 'logits': expected numbers to "
                              "choose from, found float");
  EXPECT_THAT(std::string(decide(rule(Rule::Sample), "text").message()),
              HasSubstr("found string"));
  DecisionOptions Unknown = rule(Rule::ArgMax);
  Unknown.Output = "logit";
  EXPECT_EQ(decide(Unknown, std::vector<float>{1}).message(),
            "echo:m: expected an output 'logit', found 'logits' float[?], "
            "'value' float");
  Unknown.Output.clear();
  EXPECT_THAT(
      std::string(decide(Unknown, std::vector<float>{1}).message()),
      HasSubstr("an output to decide on; name it with ?output=NAME or the "
                "metadata 'mlbridge.decide', found"));
  DecisionOptions Mask = rule(Rule::Outputs, "mask");
  EXPECT_EQ(decide(Mask, std::vector<float>{1}).code(),
            ErrorCode::InvalidArgument);
}

TEST(DecisionTest, TheMetadataGivesTheDefaults) {
  const std::vector<std::int64_t> Scores{5, 9, 7};
  const Model::Metadata About{{"mlbridge.decide", "argmax:logits"}};
  EXPECT_THAT(*decide({}, Scores, {}, About), ElementsAre(1));
  DecisionOptions Sample;
  Sample.Decide = Rule::Sample;
  EXPECT_THAT(*decide(Sample, std::vector<std::int64_t>{-5000, 9}, {}, About),
              ElementsAre(1))
      << "from the output that the metadata names";
  DecisionOptions Shown;
  Shown.Output = "logits";
  EXPECT_THAT(*decide(Shown, Scores, {}, About), ElementsAre(5, 9, 7))
      << "a named output is returned as it is";
  DecisionOptions All;
  All.Decide = Rule::Outputs;
  EXPECT_THAT(std::string(decide(All, Scores, {}, About).message()),
              HasSubstr("found 'logits' int64_t[3], 'value' float"))
      << "must list all outputs";
  EXPECT_THAT(*decide({}, Scores, {}, {{"mlbridge.decide", "outputs:logits"}}),
              ElementsAre(5, 9, 7));
}

TEST(DecisionTest, AnOutputOfTheMetadataIsNotItsScores) {
  // Exported classifiers return a label, which is not a list of scores.
  const std::vector<std::int64_t> Scores{5, 9, 7};
  for (Rule R : {Rule::ArgMax, Rule::Sample}) {
    DecisionOptions Options;
    Options.Decide = R;
    for (const char *Shown : {"outputs:logits", "outputs:value"})
      EXPECT_THAT(
          std::string(decide(Options, Scores, {}, {{"mlbridge.decide", Shown}})
                          .message()),
          HasSubstr("expected an output to decide on; name it with "
                    "?output=NAME or the metadata 'mlbridge.decide', found "
                    "'logits' int64_t[?], 'value' float"));
    Options.Output = "logits";
    Options.Seed = 1;
    EXPECT_TRUE(
        decide(Options, Scores, {}, {{"mlbridge.decide", "outputs:value"}}));
  }
}

//===----------------------------------------------------------------------===//
// Several models
//===----------------------------------------------------------------------===//

namespace {
/// Two agents take turns. An episode ends when their actions sum to 12.
class TwoAgents : public Environment {
public:
  Error reset(FeatureSet &Observation) override {
    Sum = 0;
    return observe(Observation, "even");
  }
  Error step(const Advice &Action, FeatureSet &Observation) override {
    Expected<int> By = Action.get<int>();
    if (!By)
      return By.takeError();
    Sum += Last = *By;
    setDone(Sum >= 12);
    return observe(Observation, getNextAgent() == "even" ? "odd" : "even");
  }
  double reward() const override { return Last; }

private:
  Error observe(FeatureSet &Observation, const char *Agent) {
    Observation.set("sum", Sum);
    setNextAgent(Agent);
    return Error::success();
  }
  int Sum = 0, Last = 0;
};

std::shared_ptr<const Model> constantModel(int Value) {
  return std::make_shared<FunctionModel>(
      "constant:m", std::vector<TensorSpec>{{"sum", ElementType::Int32, {}}},
      std::vector<TensorSpec>{{"out", ElementType::Int32, {}}},
      [Value](Span<const TensorView>, FeatureSet &Out) {
        Out.set("out", Value);
        return Error::success();
      });
}
} // namespace

TEST(InProcessModelRunnerTest, ModelsByLabelPlayAnEnvironment) {
  int Loaded = 0;
  InProcessModelRunner::LoadMap Loads;
  for (auto [Label, Value] : {std::pair{"even", 4}, std::pair{"odd", 1}})
    Loads[Label] = [&, Value = Value] {
      ++Loaded;
      return constantModel(Value);
    };
  InProcessModelRunner Runner("constant:even=a,odd=b", std::move(Loads));
  EXPECT_EQ(Loaded, 0) << "nothing is loaded before the first request";
  TwoAgents Env;
  Expected<double> Return = runEpisode(Env, Runner);
  ASSERT_TRUE(Return) << Return.message();
  EXPECT_EQ(*Return, 4 + 1 + 4 + 1 + 4);
  EXPECT_EQ(*runEpisode(Env, Runner), 14);
  EXPECT_EQ(Loaded, 2);
}

TEST(InProcessModelRunnerTest, TheAgentMustHaveAModel) {
  InProcessModelRunner::LoadMap Loads;
  Loads["even"] = Loads["odd"] = [] { return constantModel(1); };
  InProcessModelRunner Runner("constant:even=a,odd=b", std::move(Loads));
  EXPECT_EQ(failure(Runner, ErrorCode::SchemaMismatch, std::pair{"sum", 1}),
            "constant:even=a,odd=b: expected the string feature '_agent' to "
            "name one of the models 'even', 'odd', found no feature of that "
            "name among 'sum' int32_t");
  EXPECT_EQ(failure(Runner, ErrorCode::SchemaMismatch, std::pair{"_agent", 1}),
            "constant:even=a,odd=b: feature '_agent': expected a string, found "
            "int32_t");
  EXPECT_EQ(
      failure(Runner, ErrorCode::SchemaMismatch, std::pair{"_agent", "prime"}),
      "constant:even=a,odd=b: expected one of the models 'even', 'odd', "
      "found 'prime'");
  EXPECT_EQ(Runner.model("prime").code(), ErrorCode::SchemaMismatch);
  ASSERT_TRUE(Runner.model("odd"));
  EXPECT_EQ((*Runner.model("odd"))->name(), "constant:m");
}

TEST(InProcessModelRunnerTest, AModelThatFailsToLoadIsTriedAgain) {
  int Tries = 0;
  InProcessModelRunner::LoadMap Loads;
  Loads[""] = [&]() -> Expected<std::shared_ptr<const Model>> {
    if (++Tries == 1)
      return Error(ErrorCode::System, "no such file");
    return constantModel(3);
  };
  InProcessModelRunner Runner("constant:m", std::move(Loads));
  EXPECT_EQ(failure(Runner, ErrorCode::System, std::pair{"sum", 1}),
            "no such file");
  Runner.populateFeatures(std::pair{"sum", 1}, std::pair{"_agent", 5});
  EXPECT_EQ(Runner.evaluate<int>(), 3)
      << "without labels, `_agent` is an ordinary feature";
  EXPECT_EQ(Tries, 2);
}

TEST(InProcessModelRunnerTest, AFailureOfTheModelIsPassedOn) {
  InProcessModelRunner Runner = runnerOf(std::make_shared<FunctionModel>(
      "echo:m", std::vector<TensorSpec>(), std::vector<TensorSpec>(),
      [](Span<const TensorView>, FeatureSet &) {
        return Error(ErrorCode::Model, "division by zero");
      }));
  EXPECT_EQ(failure(Runner, ErrorCode::Model), "division by zero");
}
