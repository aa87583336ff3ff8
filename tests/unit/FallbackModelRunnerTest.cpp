//===- FallbackModelRunnerTest.cpp - Failures become deferrals ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FallbackModelRunner: after the first failure, it always defers.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/FallbackModelRunner.h"

#include "FunctionRunner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::ElementsAre;

namespace {
class FallbackModelRunnerTest : public testing::Test {
protected:
  FallbackModelRunnerTest() {
    auto Owned = std::make_unique<FunctionRunner>(
        [this](const FeatureSet &, Deadline Until, FeatureSet &Out) {
          ++Asked;
          Left = Until.remaining();
          Out.set("out", 1);
          return Next;
        });
    Inner = Owned.get();
    Owned->setTimeout(std::chrono::hours(1));
    Runner = std::make_unique<FallbackModelRunner>(std::move(Owned));
  }

  std::unique_ptr<FallbackModelRunner> Runner;
  FunctionRunner *Inner;
  /// The result of the next request to the inner runner.
  Error Next;
  int Asked = 0;
  Duration Left{};
};
} // namespace

TEST_F(FallbackModelRunnerTest, PassesRepliesOn) {
  EXPECT_EQ(Runner->evaluate<int>(), 1);
  EXPECT_FALSE(Runner->cause());
  EXPECT_EQ(Runner->describe(), "fallback|function");
}

TEST_F(FallbackModelRunnerTest, PassesTheDeadlineOn) {
  EXPECT_EQ(Runner->timeout(), std::chrono::hours(1)) << "the model's own";
  Runner->setTimeout(std::chrono::hours(5));
  Runner->evaluate<int>();
  EXPECT_GT(Left, std::chrono::hours(4));
}

TEST_F(FallbackModelRunnerTest, FailsOnceAndThenDefers) {
  Next = Error(ErrorCode::Timeout, "no answer");
  Expected<int> First = Runner->tryEvaluate<int>();
  EXPECT_EQ(First.code(), ErrorCode::Deferred);
  EXPECT_EQ(First.message(), "function failed: Timeout: no answer");
  EXPECT_EQ(Runner->cause().code(), ErrorCode::Timeout);

  Next = Error::success();
  Expected<int> Second = Runner->tryEvaluate<int>();
  EXPECT_EQ(Second.code(), ErrorCode::Deferred);
  EXPECT_EQ(Second.message(), "function failed: Timeout: no answer");
  EXPECT_EQ(Asked, 1) << "a model that failed is not asked again";
}

TEST_F(FallbackModelRunnerTest, AnInterruptIsNotAFailure) {
  struct Stopped final : Interrupt {
    bool isRequested() override { return true; }
  } Stop;
  Next = Error(ErrorCode::Timeout, "no answer");
  FeatureSet Features;
  EXPECT_EQ(
      Runner->ask(Features, AdviceSpec::any(), Deadline::never().unless(Stop))
          .code(),
      ErrorCode::Timeout);
  EXPECT_FALSE(Runner->cause());

  Next = Error::success();
  EXPECT_EQ(Runner->evaluate<int>(), 1) << "the model must be asked again";
}

TEST_F(FallbackModelRunnerTest, ADeferralIsNotAFailure) {
  Next = Error::deferred("this one is yours");
  Expected<int> First = Runner->tryEvaluate<int>();
  EXPECT_EQ(First.code(), ErrorCode::Deferred);
  EXPECT_EQ(First.message(), "this one is yours");
  EXPECT_FALSE(Runner->cause());
  Next = Error::success();
  EXPECT_EQ(*Runner->tryEvaluate<int>(), 1);
}

TEST_F(FallbackModelRunnerTest, TheCallersMistakesAreNotFailures) {
  std::vector<int> Data(3);
  Runner->populateFeatures(std::pair{"m", TensorRef(Data, {2, 2})});
  EXPECT_EQ(Runner->tryEvaluate<int>().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(Runner->tryEvaluate<std::string>().code(),
            ErrorCode::SchemaMismatch);
  EXPECT_FALSE(Runner->cause());
  EXPECT_EQ(*Runner->tryEvaluate<int>(), 1);
}

TEST_F(FallbackModelRunnerTest, PassesContextsAndOutcomesOnUntilItFails) {
  Runner->switchContext("f");
  EXPECT_FALSE(Runner->logOutcome(std::pair{"inline", true}, 2));
  Inner->OutcomeError = Error(ErrorCode::System, "disk full");
  EXPECT_FALSE(Runner->logOutcome(3));
  EXPECT_EQ(Runner->cause().code(), ErrorCode::System);
  EXPECT_EQ(Runner->tryEvaluate<int>().message(),
            "function failed: System: disk full");

  Runner->switchContext("g");
  EXPECT_FALSE(Runner->logOutcome(4));
  EXPECT_THAT(Inner->Contexts, ElementsAre("f"));
  EXPECT_EQ(Inner->Outcomes.size(), 2U);
  EXPECT_EQ(Asked, 0);
}
