//===- CEnvironmentTest.cpp - Environments written in C -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests an environment that consists of callbacks. Runners in this process use
/// it, and so does a trainer.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/FeatureSet.h"
#include "MLCompilerBridge/Transport/ModelServer.h"

#include "capi/CAPITest.h"
#include "support/EchoModel.h"
#include "support/GRPCSanitizers.h"

#include <thread>

using namespace MLBridge::test;
using testing::HasSubstr;

namespace {

/// Adds up the actions until the sum is Goal. Written like an environment in C.
struct Counter {
  std::int32_t Goal = 3, Sum = 0, Last = 0;
  /// The agents act in this order, again and again.
  std::vector<std::string> Agents;
  std::size_t Turn = 0;
  /// Called at the end of reset and step, if set.
  std::function<MLBridgeStatus(MLBridgeEnvironmentRef, MLBridgeFeatureSetRef)>
      Also;

  MLBridgeStatus observe(MLBridgeEnvironmentRef Env,
                         MLBridgeFeatureSetRef Observation) {
    if (!Agents.empty())
      mlbridgeSetNextAgent(Env, Agents[Turn++ % Agents.size()].c_str());
    if (Sum >= Goal)
      mlbridgeSetDone(Env);
    mlbridgeSetInt32(Observation, "sum", Sum);
    return Also ? Also(Env, Observation) : MLBridgeStatusSuccess;
  }
  static MLBridgeStatus reset(void *User, MLBridgeEnvironmentRef Env,
                              MLBridgeFeatureSetRef Observation) {
    auto *Self = static_cast<Counter *>(User);
    Self->Sum = Self->Last = 0;
    return Self->observe(Env, Observation);
  }
  static MLBridgeStatus step(void *User, MLBridgeEnvironmentRef Env,
                             MLBridgeAdviceRef Action,
                             MLBridgeFeatureSetRef Observation) {
    auto *Self = static_cast<Counter *>(User);
    MLBridgeStatus Status = mlbridgeGetInt32(Action, nullptr, &Self->Last);
    if (Status != MLBridgeStatusSuccess)
      return Status;
    Self->Sum += Self->Last;
    return Self->observe(Env, Observation);
  }
  static double reward(void *User) {
    return static_cast<Counter *>(User)->Last / 2.0;
  }
};

class CEnvironmentTest : public testing::Test {
protected:
  CEnvironmentTest() {
    MLBridgeEnvironmentRef Made = nullptr;
    EXPECT_EQ(mlbridgeCreateEnvironment(&Callbacks, &Count, &Made),
              MLBridgeStatusSuccess)
        << lastMessage();
    Env.reset(Made);
  }
  MLBridgeStatus play(std::vector<MLBridgeAgent> Agents, double *Return,
                      std::size_t MaxSteps = 100) {
    return mlbridgeRunEpisode(Env.get(), Agents.data(), Agents.size(), MaxSteps,
                              Return);
  }

  Counter Count;
  MLBridgeEnvironmentCallbacks Callbacks = {sizeof(Callbacks), Counter::reset,
                                            Counter::step, Counter::reward};
  EnvironmentHandle Env;
  /// Replies with the action 1.
  ReplyFunction One = [](MLBridgeAdviceRef, int64_t,
                         MLBridgeFeatureSetRef Out) {
    return mlbridgeSetInt32(Out, "action", 1);
  };
  RunnerHandle Model = makeRunner(One);
};

TEST_F(CEnvironmentTest, ARunnerPlaysAnEpisode) {
  double Return = 0;
  ASSERT_EQ(play({{nullptr, Model.get()}}, &Return), MLBridgeStatusSuccess)
      << lastMessage();
  EXPECT_EQ(Return, 1.5);
  EXPECT_EQ(Count.Sum, 3);
  EXPECT_TRUE(mlbridgeCheckDone(Env.get()));
  // The next episode starts again from 0. The pointer for the return may be
  // null.
  ASSERT_EQ(play({{"", Model.get()}}, nullptr), MLBridgeStatusSuccess);
  EXPECT_EQ(Count.Sum, 3);
}

TEST_F(CEnvironmentTest, EachAgentInItsTurn) {
  Count.Goal = 6;
  Count.Agents = {"node", "colour"};
  int Asked = 0;
  ReplyFunction Two = [&](MLBridgeAdviceRef, int64_t,
                          MLBridgeFeatureSetRef Out) {
    ++Asked;
    const char *Label = "";
    EXPECT_EQ(mlbridgeGetNextAgent(Env.get(), &Label), MLBridgeStatusSuccess);
    EXPECT_STREQ(Label, "colour");
    return mlbridgeSetInt32(Out, "action", 2);
  };
  RunnerHandle Other = makeRunner(Two);
  double Return = 0;
  ASSERT_EQ(play({{"node", Model.get()}, {"colour", Other.get()}}, &Return),
            MLBridgeStatusSuccess)
      << lastMessage();
  EXPECT_EQ(Return, 3);
  EXPECT_EQ(Asked, 2);

  // One runner may serve all agents. It gets the agent's name.
  std::vector<std::string> Turns;
  ReplyFunction All = [&](MLBridgeAdviceRef Request, int64_t,
                          MLBridgeFeatureSetRef Out) {
    const char *Label = "";
    EXPECT_EQ(mlbridgeGetString(Request, "_agent", &Label, nullptr),
              MLBridgeStatusSuccess);
    Turns.emplace_back(Label);
    return mlbridgeSetInt32(Out, "action", 3);
  };
  RunnerHandle Single = makeRunner(All);
  Count.Turn = 0;
  ASSERT_EQ(play({{nullptr, Single.get()}}, &Return), MLBridgeStatusSuccess)
      << lastMessage();
  EXPECT_THAT(Turns, testing::ElementsAre("node", "colour"));

  EXPECT_EQ(play({{"node", Model.get()}, {"node", Other.get()}}, nullptr),
            MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("two agents 'node'"));
  EXPECT_EQ(play({{"node", nullptr}}, nullptr), MLBridgeStatusInvalidArgument);
  EXPECT_EQ(play({{"edge", Model.get()}}, nullptr),
            MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("only 'edge'"));
}

TEST_F(CEnvironmentTest, AnEpisodeEndsInTime) {
  Count.Goal = 1000;
  double Return = 7;
  EXPECT_EQ(play({{"", Model.get()}}, &Return), MLBridgeStatusTimeout);
  EXPECT_THAT(lastMessage(), HasSubstr("100 steps"));
  EXPECT_EQ(Return, 7);
  Count.Also = [&](MLBridgeEnvironmentRef Now, MLBridgeFeatureSetRef) {
    EXPECT_FALSE(mlbridgeCheckDone(Now));
    return Count.Sum == 5 ? mlbridgeSetTruncated(Now) : MLBridgeStatusSuccess;
  };
  EXPECT_EQ(play({{"", Model.get()}}, &Return), MLBridgeStatusSuccess);
  EXPECT_EQ(Return, 2.5);
}

TEST_F(CEnvironmentTest, FailuresKeepTheirCodesAndMessages) {
  Count.Also = [](auto...) {
    return mlbridgeFail(MLBridgeStatusModel, "the scheduler gave up");
  };
  EXPECT_EQ(play({{"", Model.get()}}, nullptr), MLBridgeStatusModel);
  EXPECT_EQ(lastMessage(), "the scheduler gave up");
  Count.Also = [](auto...) { return MLBridgeStatusSystem; };
  EXPECT_EQ(play({{"", Model.get()}}, nullptr), MLBridgeStatusSystem);
  EXPECT_THAT(lastMessage(), HasSubstr("Reset failed"));
  // Setting this observation fails.
  Count.Also = [](MLBridgeEnvironmentRef, MLBridgeFeatureSetRef Observation) {
    mlbridgeSetString(Observation, nullptr, "x");
    return MLBridgeStatusSuccess;
  };
  EXPECT_EQ(play({{"", Model.get()}}, nullptr), MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("'Name' is null"));
  // step() cannot read an action of this type.
  Count.Also = nullptr;
  One = [](MLBridgeAdviceRef, int64_t, MLBridgeFeatureSetRef Out) {
    return mlbridgeSetDouble(Out, "action", 0.5);
  };
  EXPECT_EQ(play({{"", Model.get()}}, nullptr), MLBridgeStatusSchemaMismatch);
}

TEST_F(CEnvironmentTest, CallbacksMustBeComplete) {
  MLBridgeEnvironmentRef Made = nullptr;
  auto Create = [&] {
    return mlbridgeCreateEnvironment(&Callbacks, nullptr, &Made);
  };
  Callbacks.Size = 8;
  EXPECT_EQ(Create(), MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("found 8"));
  Callbacks.Size = 1000;
  EXPECT_EQ(Create(), MLBridgeStatusUnsupported);
  Callbacks.Size = sizeof(Callbacks);
  Callbacks.Reset = nullptr;
  EXPECT_EQ(Create(), MLBridgeStatusInvalidArgument);
  Callbacks.Reset = Counter::reset;
  Callbacks.Step = nullptr;
  EXPECT_EQ(Create(), MLBridgeStatusInvalidArgument);
  EXPECT_EQ(Made, nullptr);
  // The reward callback is optional.
  Callbacks.Step = Counter::step;
  Callbacks.Reward = nullptr;
  EXPECT_EQ(mlbridgeCreateEnvironment(&Callbacks, &Count, &Made),
            MLBridgeStatusSuccess);
  Env.reset(Made);
  double Return = 7;
  EXPECT_EQ(play({{"", Model.get()}}, &Return), MLBridgeStatusSuccess);
  EXPECT_EQ(Return, 0);
}

/// A trainer for one session. \p Say gets the last observation and sets the
/// next command. If \p Say returns false, the trainer closes the session.
class Trainer {
public:
  using Reply = std::function<bool(const MLBridge::Advice &,
                                   MLBridge::FeatureSet &, int Turn)>;
  Trainer(const std::string &Name, Reply Say) {
    MLBridge::ModelServerOptions Options;
    Options.Bare = false;
    auto Listening = MLBridge::ModelServer::listen(Name, Options);
    EXPECT_TRUE(Listening) << Listening.takeError().str();
    if (Listening)
      Thread = std::thread([Server = std::move(*Listening),
                            Say = std::move(Say)] {
        for (int Turn = 0;; ++Turn) {
          auto Request =
              Server->next(MLBridge::Deadline::in(std::chrono::seconds(30)));
          if (!Request)
            return;
          MLBridge::FeatureSet Command;
          bool More = Say(MLBridge::Advice(Request->Features), Command, Turn);
          if (!More)
            Command.set("_command", "close");
          EXPECT_FALSE(Server->reply(Command.tensors()));
          if (!More)
            return;
        }
      });
  }
  ~Trainer() {
    if (Thread.joinable())
      Thread.join();
  }

private:
  std::thread Thread;
};

TEST_F(CEnvironmentTest, ATrainerDrivesIt) {
  TemporaryDirectory Folder;
  for (const char *Scheme : {"pipe", "shm"}) {
    const std::string Name = Folder.path(Scheme);
    std::vector<double> Rewards;
    Count.Also = [](MLBridgeEnvironmentRef Now,
                    MLBridgeFeatureSetRef Observation) {
      bool HasSeed = false;
      int64_t Seed = -1;
      const char *Options = "";
      EXPECT_EQ(mlbridgeGetSeed(Now, &HasSeed, &Seed), MLBridgeStatusSuccess);
      EXPECT_TRUE(HasSeed);
      EXPECT_EQ(mlbridgeGetOptions(Now, &Options), MLBridgeStatusSuccess);
      EXPECT_STREQ(Options, "{\"level\": 2}");
      mlbridgeSetInfo(Now, "{\"spills\": 1}");
      return mlbridgeSetInt64(Observation, "seed", Seed);
    };
    {
      Trainer Training(Name, [&](const MLBridge::Advice &Seen,
                                 MLBridge::FeatureSet &Command, int Turn) {
        if (Turn == 0) {
          EXPECT_TRUE(Seen.find("_ready"));
          Command.set("_command", "reset");
          Command.set("_seed", std::int64_t(42));
          Command.set("_options", "{\"level\": 2}");
          return true;
        }
        EXPECT_EQ(*Seen.get<std::int64_t>("seed"), 42);
        EXPECT_EQ(*Seen.get<std::string>("_info"), "{\"spills\": 1}");
        Rewards.push_back(*Seen.get<double>("_reward"));
        Command.set("_command", "step");
        Command.set("action", 2);
        return !*Seen.get<bool>("_terminated");
      });
      const std::string Spec =
          std::string(Scheme) + ":" + Name + "?timeout=20s&connect=20s";
      EXPECT_EQ(mlbridgeServeEnvironment(Env.get(), Spec.c_str()),
                MLBridgeStatusSuccess)
          << lastMessage();
    }
    EXPECT_THAT(Rewards, testing::ElementsAre(0, 1, 1));
  }
}

TEST_F(CEnvironmentTest, WithoutASeedItIsUnset) {
  bool HasSeed = true;
  int64_t Seed = 7;
  EXPECT_EQ(mlbridgeGetSeed(Env.get(), &HasSeed, &Seed), MLBridgeStatusSuccess);
  EXPECT_FALSE(HasSeed);
  EXPECT_EQ(Seed, 7);
}

TEST_F(CEnvironmentTest, AMissingTrainerIsATimeout) {
  TemporaryDirectory Folder;
  const std::string Nobody = Folder.path("nobody") + "?connect=50ms";
  EXPECT_EQ(mlbridgeServeEnvironment(Env.get(), ("pipe:" + Nobody).c_str()),
            MLBridgeStatusTimeout);
  EXPECT_EQ(mlbridgeServeEnvironment(Env.get(), "none"),
            MLBridgeStatusInvalidArgument);
}

TEST_F(CEnvironmentTest, ATrainerThroughGRPC) {
  MLBRIDGE_SKIP_GRPC_UNDER_TSAN();
  TemporaryDirectory Folder;
  const std::string Spec =
      "grpc+unix:" + Folder.path("nobody") + "?connect=50ms";
  const MLBridgeStatus Status =
      mlbridgeServeEnvironment(Env.get(), Spec.c_str());
#ifdef MLBRIDGE_HAS_GRPC
  EXPECT_EQ(Status, MLBridgeStatusTimeout) << lastMessage();
#else
  EXPECT_EQ(Status, MLBridgeStatusUnsupported) << lastMessage();
#endif
}

} // namespace
