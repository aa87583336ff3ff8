//===- MLModelRunnerTest.cpp - A request to a model -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests MLModelRunner, the base class of all runners.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/MLModelRunner.h"

#include "FunctionRunner.h"
#include "support/AllocationCounter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::ElementsAre;

/// Replies with the sum of all features, as "out".
static Error replySum(const FeatureSet &Features, Deadline, FeatureSet &Out) {
  double Sum = 0;
  for (const TensorView &View : Features.tensors()) {
    Expected<std::vector<double>> Values =
        Advice({&View, 1}).get<std::vector<double>>();
    if (!Values)
      return Values.takeError();
    for (double Value : *Values)
      Sum += Value;
  }
  Out.set("out", Sum);
  return Error::success();
}

TEST(MLModelRunnerTest, PopulatesAndEvaluates) {
  FunctionRunner Runner(replySum);
  std::vector<float> Embedding = {1, 2, 3};
  Runner.populateFeatures(std::pair{"size", 12},
                          std::pair{std::string("weights"), Embedding});
  Runner.populateFeatures(std::pair{std::string_view("flag"), true});
  EXPECT_EQ(Runner.evaluate<int>(), 19);

  EXPECT_EQ(Runner.evaluate<int>(), 0) << "the features are forgotten";
  Runner.populateFeatures(std::pair{"a", 1}, std::pair{"a", 2});
  EXPECT_EQ(Runner.evaluate<float>(), 2) << "the last value wins";
}

TEST(MLModelRunnerTest, EvaluatesToEveryForm) {
  FunctionRunner Runner([](const FeatureSet &, Deadline, FeatureSet &Out) {
    Out.set("out", std::vector<float>{1, 0});
    Out.set("why", "because");
    return Error::success();
  });
  EXPECT_THAT(Runner.evaluate<std::vector<double>>(), ElementsAre(1, 0));
  EXPECT_THAT(Runner.evaluate<std::vector<bool>>(), ElementsAre(true, false));
  EXPECT_EQ(Runner.evaluate<Span<const float>>().size(), 2U);
  Advice All = Runner.evaluate<Advice>();
  EXPECT_EQ(*All.get<std::string>("why"), "because");
}

TEST(MLModelRunnerTest, TryEvaluateReturnsEveryFailure) {
  FunctionRunner Runner(
      [](const FeatureSet &Features, Deadline, FeatureSet &Out) -> Error {
        if (Features.find("defer"))
          return Error::deferred("not mine");
        if (Features.find("break"))
          return {ErrorCode::Model, "broken"};
        Out.set("out", 300);
        return Error::success();
      });
  Runner.populateFeatures(std::pair{"defer", 1});
  EXPECT_EQ(Runner.tryEvaluate<int>().code(), ErrorCode::Deferred);
  Runner.populateFeatures(std::pair{"break", 1});
  EXPECT_EQ(Runner.tryEvaluate<int>().takeError().str(), "Model: broken");
  const Error TooLarge = Runner.tryEvaluate<std::int8_t>().takeError();
  EXPECT_EQ(TooLarge.code(), ErrorCode::SchemaMismatch);
  EXPECT_EQ(TooLarge.message().find(Runner.describe() + ": advice 'out': "), 0U)
      << TooLarge.message();
  EXPECT_EQ(*Runner.tryEvaluate<int>(), 300) << "a failure leaves no feature";
}

TEST(MLModelRunnerTest, AnInvalidFeatureIsNotSent) {
  int Asked = 0;
  FunctionRunner Runner([&](const FeatureSet &, Deadline, FeatureSet &Out) {
    ++Asked;
    Out.set("out", 1);
    return Error::success();
  });
  std::vector<int> Data(3);
  Runner.populateFeatures(std::pair{"m", TensorRef(Data, {2, 2})});
  Expected<int> Reply = Runner.tryEvaluate<int>();
  EXPECT_EQ(Reply.code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(Reply.message(),
            "feature 'm': shape [2,2] needs 4 elements, found 3");
  EXPECT_EQ(Asked, 0);
  EXPECT_EQ(*Runner.tryEvaluate<int>(), 1) << "the next request is a new one";
}

TEST(MLModelRunnerTest, AskLeavesTheFeaturesAsTheyAre) {
  FunctionRunner Runner(replySum);
  FeatureSet Features;
  Features.set("x", 3);
  for (int I = 0; I < 2; ++I) {
    Expected<Advice> Reply = Runner.ask(Features, AdviceSpec::any());
    ASSERT_TRUE(Reply);
    EXPECT_EQ(*Reply->get<int>(), 3);
  }
  EXPECT_EQ(Features.size(), 1U);
}

TEST(MLModelRunnerTest, TheDeadlineIsTheTimeoutUnlessGiven) {
  Duration Left{};
  FunctionRunner Runner([&](const FeatureSet &, Deadline Until, FeatureSet &) {
    Left = Until.remaining();
    return Error::success();
  });
  EXPECT_EQ(Runner.timeout(), std::chrono::seconds(30));
  Runner.setTimeout(std::chrono::minutes(5));
  (void)Runner.tryEvaluate<Advice>();
  EXPECT_LE(Left, std::chrono::minutes(5));
  EXPECT_GT(Left, std::chrono::minutes(4));
  (void)Runner.ask(FeatureSet(), AdviceSpec::any(),
                   Deadline::in(std::chrono::hours(1)));
  EXPECT_GT(Left, std::chrono::minutes(59));
  Runner.setTimeout(Duration::max());
  (void)Runner.tryEvaluate<Advice>();
  EXPECT_EQ(Left, Duration::max());
}

TEST(MLModelRunnerTest, LogOutcomeTakesAnyDecision) {
  FunctionRunner Runner(replySum);
  EXPECT_FALSE(Runner.logOutcome(std::pair{"inline", true}, 0.5));
  EXPECT_FALSE(Runner.logOutcome(std::pair{"inline", false}));
  EXPECT_FALSE(Runner.logOutcome(2.5));
  using Outcome = std::pair<std::string, std::optional<double>>;
  EXPECT_THAT(Runner.Outcomes,
              ElementsAre(Outcome("inline", 0.5), Outcome("inline", {}),
                          Outcome("", 2.5)));
  std::vector<int> Data(3);
  Error E = Runner.logOutcome(std::pair{"m", TensorRef(Data, {2, 2})});
  EXPECT_EQ(E.code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(Runner.Outcomes.size(), 3U);
}

TEST(MLModelRunnerDeathTest, EvaluatePrintsTheErrorAndEndsTheProcess) {
  FunctionRunner Runner([](const FeatureSet &, Deadline, FeatureSet &) {
    return Error(ErrorCode::Model, "broken");
  });
  EXPECT_EXIT(Runner.evaluate<int>(), testing::ExitedWithCode(1),
              "^error: function: Model: broken\n$");
}

TEST(MLModelRunnerDeathTest, EvaluateCallsTheHandlerInstead) {
  FunctionRunner Runner([](const FeatureSet &, Deadline, FeatureSet &) {
    return Error::deferred("nobody knows");
  });
  Runner.setErrorHandler([](const Error &E) {
    std::fprintf(stderr, "handled %s", E.str().c_str());
  });
  EXPECT_EXIT(Runner.evaluate<int>(), testing::ExitedWithCode(1),
              "^handled Deferred: nobody knows$");
}

TEST(MLModelRunnerTest, ARoundDoesNotAllocateOnceWarm) {
  FunctionRunner Runner(
      [](const FeatureSet &Features, Deadline, FeatureSet &Out) {
        Out.set("out", Features.tensors()[0]);
        Out.set("probabilities", Features.tensors()[1]);
        return Error::success();
      });
  std::vector<double> Embedding(300, 0.5);
  std::vector<std::string> Names = {"a name that fits no short string", "b"};
  std::int64_t Sum = 0;
  auto Round = [&](int I) {
    Runner.populateFeatures(
        std::pair{"callee_size", I},
        std::pair{"embedding", Span<const double>(Embedding)},
        std::pair<const char *, const std::vector<std::string> &>{"names",
                                                                  Names});
    Sum += *Runner.tryEvaluate<std::int64_t>();
    EXPECT_FALSE(Runner.logOutcome(std::pair{"inline", true}));
    Runner.Outcomes.clear();
  };
  Round(0);
  Round(0);
  AllocationCounter Allocations;
  for (int I = 1; I <= 1000; ++I)
    Round(I);
  EXPECT_EQ(Allocations.count(), 0U);
  EXPECT_EQ(Sum, 1000 * 1001 / 2);
}
