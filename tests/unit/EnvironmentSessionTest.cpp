//===- EnvironmentSessionTest.cpp - Messages to an environment ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests EnvironmentSession: each command, its wrong uses, and failures of the
/// environment.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Training/EnvironmentSession.h"

#include "support/AllocationCounter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::HasSubstr;

namespace {

/// Adds up its actions until the sum is 3 or more. The member Also changes an
/// observation, and Failure is the returned error.
class Adder : public Environment {
public:
  Error reset(FeatureSet &Observation) override {
    EXPECT_TRUE(Observation.empty());
    ++Resets;
    Sum = 0;
    return observe(Observation);
  }
  Error step(const Advice &Action, FeatureSet &Observation) override {
    EXPECT_TRUE(Observation.empty());
    Expected<int> By = Action.get<int>();
    if (!By)
      return By.takeError();
    Sum += *By;
    if (Sum >= 3)
      setDone();
    return observe(Observation);
  }
  double reward() const override { return Sum / 2.0; }

  int Resets = 0, Sum = 0;
  Error Failure;
  std::function<void(Adder &, FeatureSet &)> Also;

private:
  Error observe(FeatureSet &Observation) {
    Observation.set("sum", Sum);
    if (Also)
      Also(*this, Observation);
    return Failure;
  }
};

class EnvironmentSessionTest : public testing::Test {
protected:
  /// Sends \p Command with the tensors that \p Fill adds, and stores the reply.
  void command(std::string_view Command,
               const std::function<void(FeatureSet &)> &Fill = nullptr) {
    FeatureSet Message;
    Message.set("_command", Command);
    if (Fill)
      Fill(Message);
    Reply = Advice(Session.reply(Message.tensors()));
  }
  void step(int Action) {
    command("step",
            [&](FeatureSet &Message) { Message.set("action", Action); });
  }

  template <typename T> T get(std::string_view Name) {
    Expected<T> Value = Reply.get<T>(Name);
    EXPECT_TRUE(Value) << Value.message();
    return Value ? *Value : T();
  }
  void expectError(ErrorCode Code, std::string_view Mentions) {
    ASSERT_TRUE(Reply.find("_error")) << "expected an error";
    EXPECT_EQ(get<std::string>("_code"), errorCodeName(Code));
    EXPECT_THAT(get<std::string>("_error"), HasSubstr(std::string(Mentions)));
    EXPECT_EQ(Reply.size(), 2U);
  }

  Adder Env;
  EnvironmentSession Session{Env};
  Advice Reply;
};

} // namespace

TEST_F(EnvironmentSessionTest, GreetsWithReady) {
  Advice Greeting(Session.greet());
  ASSERT_EQ(Greeting.size(), 1U);
  EXPECT_TRUE(*Greeting.get<bool>("_ready"));
  EXPECT_EQ(Env.Resets, 0);
}

TEST_F(EnvironmentSessionTest, PlaysEpisodes) {
  for (int Episode = 1; Episode <= 2; ++Episode) {
    command("reset");
    EXPECT_EQ(Env.Resets, Episode);
    EXPECT_EQ(get<int>("sum"), 0);
    EXPECT_EQ(get<double>("_reward"), 0);
    EXPECT_FALSE(get<bool>("_terminated"));
    EXPECT_FALSE(get<bool>("_truncated"));
    EXPECT_FALSE(Reply.find("_agent"));
    EXPECT_FALSE(Reply.find("_info"));
    step(1);
    EXPECT_EQ(get<int>("sum"), 1);
    EXPECT_EQ(get<double>("_reward"), 0.5);
    EXPECT_FALSE(get<bool>("_terminated"));
    step(2);
    EXPECT_EQ(get<int>("sum"), 3);
    EXPECT_EQ(get<double>("_reward"), 1.5);
    EXPECT_TRUE(get<bool>("_terminated"));
    EXPECT_FALSE(get<bool>("_truncated"));
  }
  EXPECT_FALSE(Session.isClosed());
  command("close");
  EXPECT_TRUE(Session.isClosed());
  EXPECT_EQ(Reply.size(), 0U);
}

TEST_F(EnvironmentSessionTest, ResetsBeforeTheEndOfAnEpisode) {
  command("reset");
  step(2);
  command("reset");
  step(1);
  EXPECT_EQ(get<int>("sum"), 1);
}

TEST_F(EnvironmentSessionTest, HandsOnSeedAndOptions) {
  std::optional<std::int64_t> Seed;
  std::string Options;
  Env.Also = [&](Adder &E, FeatureSet &) {
    Seed = E.seed();
    Options = E.options();
  };
  command("reset", [](FeatureSet &Message) {
    Message.set("_seed", std::int64_t(1) << 40);
    Message.set("_options", "{\"file\": \"a.c\"}");
  });
  EXPECT_EQ(Seed, std::int64_t(1) << 40);
  EXPECT_EQ(Options, "{\"file\": \"a.c\"}");
  command("reset");
  EXPECT_FALSE(Seed) << "a seed lasts one episode";
  EXPECT_EQ(Options, "");
}

TEST_F(EnvironmentSessionTest, AgentsInfoAndTruncation) {
  Env.Also = [](Adder &E, FeatureSet &) {
    E.setNextAgent(E.Sum == 0 ? "first" : "second");
    if (E.Sum == 0)
      E.setInfo("{\"at\": 0}");
    if (E.Sum == 2)
      E.setTruncated();
  };
  command("reset");
  EXPECT_EQ(get<std::string>("_agent"), "first");
  EXPECT_EQ(get<std::string>("_info"), "{\"at\": 0}");
  step(2);
  EXPECT_EQ(get<std::string>("_agent"), "second");
  EXPECT_FALSE(Reply.find("_info")) << "info lasts one observation";
  EXPECT_FALSE(get<bool>("_terminated"));
  EXPECT_TRUE(get<bool>("_truncated"));
  step(1);
  expectError(ErrorCode::InvalidArgument, "reset first");
  command("reset");
  EXPECT_FALSE(get<bool>("_truncated"));
}

TEST_F(EnvironmentSessionTest, AnEpisodeMayBeOverAtOnce) {
  Env.Also = [](Adder &E, FeatureSet &) { E.setDone(); };
  command("reset");
  EXPECT_TRUE(get<bool>("_terminated"));
  step(1);
  expectError(ErrorCode::InvalidArgument, "after the end of the episode");
}

TEST_F(EnvironmentSessionTest, ActionsOfSeveralTensors) {
  class Pair final : public Adder {
    Error step(const Advice &Action, FeatureSet &) override {
      EXPECT_EQ(Action.size(), 2U);
      EXPECT_EQ(*Action.get<std::string>("where"), "here");
      EXPECT_EQ(*Action.get<std::vector<float>>("how"),
                (std::vector<float>{1, 2}));
      return Error::success();
    }
  } Pair;
  EnvironmentSession Session(Pair);
  FeatureSet Message;
  Message.set("_command", "reset");
  (void)Session.reply(Message.tensors());
  Message.clear();
  Message.set("how", std::vector<float>{1, 2});
  Message.set("_command", "step");
  Message.set("_of_a_later_version", 1);
  Message.set("where", "here");
  EXPECT_FALSE(Advice(Session.reply(Message.tensors())).find("_error"));
}

TEST_F(EnvironmentSessionTest, InvalidCommandsChangeNothing) {
  step(1);
  expectError(ErrorCode::InvalidArgument, "outside an episode");
  command("reset");
  command("jump");
  expectError(ErrorCode::InvalidArgument,
              "expected the command reset, step or close, found 'jump'");
  command("step");
  expectError(ErrorCode::InvalidArgument, "without an action");
  FeatureSet Message;
  Reply = Advice(Session.reply(Message.tensors()));
  expectError(ErrorCode::InvalidArgument, "'_command'");
  Message.set("_command", 1);
  Reply = Advice(Session.reply(Message.tensors()));
  expectError(ErrorCode::InvalidArgument, "expected a string, found int32_t");
  Message.set("_command", std::vector<std::string>{"step"});
  Reply = Advice(Session.reply(Message.tensors()));
  expectError(ErrorCode::InvalidArgument, "expected a string, found string");
  command("reset", [](FeatureSet &M) { M.set("_seed", 0.5); });
  expectError(ErrorCode::SchemaMismatch, "_seed");
  command("reset", [](FeatureSet &M) { M.set("_options", 5); });
  expectError(ErrorCode::InvalidArgument, "_options");
  EXPECT_EQ(Env.Resets, 1);
  step(1);
  EXPECT_EQ(get<int>("sum"), 1) << "the episode must go on";
}

TEST_F(EnvironmentSessionTest, AFailureOfTheEnvironmentEndsTheEpisode) {
  Env.Failure = Error(ErrorCode::System, "no such file");
  command("reset");
  expectError(ErrorCode::System, "no such file");
  step(1);
  expectError(ErrorCode::InvalidArgument, "outside an episode");

  Env.Failure = Error::success();
  command("reset");
  command("step", [](FeatureSet &M) { M.set("action", "a word"); });
  expectError(ErrorCode::SchemaMismatch, "action");
  step(1);
  expectError(ErrorCode::InvalidArgument, "reset first");
  command("reset");
  step(1);
  EXPECT_EQ(get<int>("sum"), 1);
}

TEST_F(EnvironmentSessionTest, InvalidObservations) {
  Env.Also = [](Adder &, FeatureSet &O) { O.set("_reward", 1.0); };
  command("reset");
  expectError(ErrorCode::InvalidArgument, "'_reward'");
  std::vector<int> Data(3);
  Env.Also = [&](Adder &, FeatureSet &O) {
    O.set("matrix", TensorRef(Data, {2, 2}));
  };
  command("reset");
  expectError(ErrorCode::InvalidArgument, "'matrix'");
}

TEST_F(EnvironmentSessionTest, DoesNotAllocateOnceWarm) {
  std::vector<float> Values(300);
  Env.Also = [&](Adder &E, FeatureSet &O) {
    O.set("a feature with a name that is not short at all", E.Sum);
    O.set("embedding", Values);
  };
  FeatureSet Reset, Step;
  Reset.set("_command", "reset");
  Step.set("_command", "step");
  Step.set("action", 1);
  EXPECT_EQ(allocationsOnceWarm([&] {
              (void)Session.reply(Reset.tensors());
              for (int I = 0; I < 3; ++I)
                (void)Session.reply(Step.tensors());
            }),
            0U);
}
