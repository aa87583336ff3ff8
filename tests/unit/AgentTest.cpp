//===- AgentTest.cpp - Agents that play an environment --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// runEpisode(): rewards, turns, limits, and the result of each failure.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Training/Agent.h"

#include "FunctionRunner.h"
#include "support/AllocationCounter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {
/// Adds up actions until the sum reaches Goal. A step's reward is its action.
class Counter : public Environment {
public:
  explicit Counter(int Goal) : Goal(Goal) {}

  Error reset(FeatureSet &Observation) override {
    EXPECT_TRUE(Observation.empty());
    EXPECT_FALSE(checkDone());
    Sum = 0;
    Last = 0;
    setDone(Goal == 0);
    return observe(Observation);
  }
  Error step(const Advice &Action, FeatureSet &Observation) override {
    EXPECT_TRUE(Observation.empty());
    Expected<int> By = Action.get<int>();
    if (!By)
      return By.takeError();
    Last = *By;
    Sum += Last;
    setDone(Sum >= Goal);
    return observe(Observation);
  }
  double reward() const override { return Last; }

  int sum() const { return Sum; }

private:
  virtual Error observe(FeatureSet &Observation) {
    Observation.set("sum", Sum);
    return Error::success();
  }

  int Goal, Last = 0, Sum = 0;
};

/// Always replies with the same action, unless Failure is set.
class Constant : public Agent {
public:
  explicit Constant(int Action) { Out.set("action", Action); }
  Expected<Advice> computeAction(const FeatureSet &Observation) override {
    Seen.push_back(*Advice(Observation.tensors()).get<int>("sum"));
    if (Failure)
      return Failure;
    return Advice(Out.tensors());
  }
  std::vector<int> Seen;
  Error Failure;

private:
  FeatureSet Out;
};
} // namespace

TEST(AgentTest, PlaysAnEpisodeToItsEnd) {
  Counter Env(7);
  Constant By3(3);
  Expected<double> Return = runEpisode(Env, {{"", &By3}});
  ASSERT_TRUE(Return) << Return.message();
  EXPECT_EQ(*Return, 9);
  EXPECT_THAT(By3.Seen, ElementsAre(0, 3, 6));
  EXPECT_TRUE(Env.checkDone());

  Return = runEpisode(Env, {{"", &By3}});
  ASSERT_TRUE(Return) << "the second episode:" << Return.message();
  EXPECT_EQ(*Return, 9);
  EXPECT_THAT(By3.Seen, ElementsAre(0, 3, 6, 0, 3, 6));
}

TEST(AgentTest, AnEpisodeMayBeDoneAtOnce) {
  Counter Env(0);
  Constant By3(3);
  Expected<double> Return = runEpisode(Env, {{"", &By3}}, 0);
  ASSERT_TRUE(Return) << Return.message();
  EXPECT_EQ(*Return, 0);
  EXPECT_TRUE(By3.Seen.empty());
}

TEST(AgentTest, AnEndlessEpisodeIsATimeout) {
  Counter Env(1'000'000'000);
  Constant By1(1);
  Expected<double> Return = runEpisode(Env, {{"", &By1}}, 10);
  EXPECT_EQ(Return.code(), ErrorCode::Timeout);
  EXPECT_THAT(std::string(Return.message()), HasSubstr("10 steps"));
  EXPECT_EQ(Env.sum(), 10);
  Counter Exact(10);
  EXPECT_TRUE(runEpisode(Exact, {{"", &By1}}, 10)) << "10 steps are not more";
}

namespace {
/// Two agents that take turns.
class Turns final : public Counter {
public:
  using Counter::Counter;

private:
  Error observe(FeatureSet &Observation) override {
    setNextAgent(sum() % 2 == 0 ? "even" : "odd");
    Observation.set("sum", sum());
    return Error::success();
  }
};
} // namespace

TEST(AgentTest, EachAgentActsWhenItIsItsTurn) {
  Turns Env(9);
  Constant Even(3), Odd(1);
  Expected<double> Return = runEpisode(Env, {{"even", &Even}, {"odd", &Odd}});
  ASSERT_TRUE(Return) << Return.message();
  EXPECT_EQ(*Return, 11);
  EXPECT_THAT(Even.Seen, ElementsAre(0, 4, 8));
  EXPECT_THAT(Odd.Seen, ElementsAre(3, 7));
}

TEST(AgentTest, AnUnknownAgentIsNamed) {
  Turns Env(9);
  Constant Even(3);
  Expected<double> Return =
      runEpisode(Env, {{"even", &Even}, {"odd", nullptr}});
  EXPECT_EQ(Return.code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(Return.message(), "the environment asks for agent 'odd', but there "
                              "is only 'even'");
  EXPECT_EQ(runEpisode(Env, {}).message(),
            "the environment asks for agent 'even', but there is no agent");
}

namespace {
/// Makes an observation whose shape (4 elements) does not fit its 3 elements of
/// data.
class Blind final : public Counter {
public:
  using Counter::Counter;

private:
  Error observe(FeatureSet &Observation) override {
    Observation.set("sum", TensorRef(Data, {2, 2}));
    return Error::success();
  }
  std::vector<int> Data = std::vector<int>(3);
};

/// Fails in each reset.
class Broken final : public Environment {
public:
  Error reset(FeatureSet &) override { return {ErrorCode::System, "no reset"}; }
  Error step(const Advice &, FeatureSet &) override { return {}; }
};
} // namespace

TEST(AgentTest, EveryFailureEndsTheEpisode) {
  Constant Agent(1);
  Broken NoReset;
  EXPECT_EQ(runEpisode(NoReset, {{"", &Agent}}).message(), "no reset");
  Blind NoObservation(3);
  EXPECT_EQ(runEpisode(NoObservation, {{"", &Agent}}).code(),
            ErrorCode::InvalidArgument);
  EXPECT_TRUE(Agent.Seen.empty());

  Counter Env(3);
  Agent.Failure = Error(ErrorCode::Model, "no idea");
  EXPECT_EQ(runEpisode(Env, {{"", &Agent}}).code(), ErrorCode::Model);
  FunctionRunner Poet([](const FeatureSet &, Deadline, FeatureSet &Out) {
    Out.set("action", "a word");
    return Error::success();
  });
  RunnerAgent Wordy(Poet);
  EXPECT_EQ(runEpisode(Env, {{"", &Wordy}}).code(), ErrorCode::SchemaMismatch)
      << "the environment's own error";
}

TEST(AgentTest, AnActionMayViewItsObservation) {
  FunctionRunner Echo(
      [](const FeatureSet &Observation, Deadline, FeatureSet &Out) {
        Out.set("action", Observation.tensors()[0]);
        return Error::success();
      });
  RunnerAgent Agent(Echo);
  class Doubling final : public Counter {
    using Counter::Counter;
    Error observe(FeatureSet &Observation) override {
      Observation.set("sum", sum() == 0 ? 1 : sum());
      return Error::success();
    }
  } Env(64);
  Expected<double> Return = runEpisode(Env, {{"", &Agent}});
  ASSERT_TRUE(Return) << Return.message();
  EXPECT_EQ(*Return, 64);
}

TEST(AgentTest, OneRunnerMayPlayAllAgents) {
  std::vector<std::string> Asked;
  FunctionRunner Player(
      [&](const FeatureSet &Observation, Deadline, FeatureSet &Out) {
        const TensorView *Agent = Observation.find("_agent");
        Asked.emplace_back(Agent ? Agent->text() : "nobody");
        Out.set("action", 1);
        return Error::success();
      });
  class Turns final : public Counter {
    using Counter::Counter;
    Error observe(FeatureSet &Observation) override {
      setNextAgent(sum() == 0 ? "" : "agent " + std::to_string(sum()));
      Observation.set("sum", sum());
      return Error::success();
    }
  } Env(3);
  Expected<double> Return = runEpisode(Env, Player);
  ASSERT_TRUE(Return) << Return.message();
  EXPECT_EQ(*Return, 3);
  EXPECT_THAT(Asked, ElementsAre("nobody", "agent 1", "agent 2"));
  EXPECT_EQ(runEpisode(Env, Player, 2).code(), ErrorCode::Timeout);
}

TEST(AgentTest, StepsDoNotAllocateOnceWarm) {
  class Quiet final : public Counter {
    using Counter::Counter;
    Error observe(FeatureSet &Observation) override {
      Observation.set("a feature with a name that is not short at all", sum());
      Observation.set("embedding", Values);
      if (sum() == 4) // Both buffers have grown by now.
        Start.emplace();
      else if (sum() == 1000)
        Found = Start->count();
      return Error::success();
    }
    std::vector<float> Values = std::vector<float>(300);
    std::optional<AllocationCounter> Start;

  public:
    std::size_t Found = 1;
  } Env(1000);
  FunctionRunner One([](const FeatureSet &, Deadline, FeatureSet &Out) {
    Out.set("action", 1);
    return Error::success();
  });
  RunnerAgent Agent(One);
  ASSERT_TRUE(runEpisode(Env, {{"", &Agent}}));
  EXPECT_EQ(Env.Found, 0U);
}
