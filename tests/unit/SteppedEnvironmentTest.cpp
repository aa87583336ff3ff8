//===- SteppedEnvironmentTest.cpp - Compilers that run through --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs a trainer that sends commands and a compiler that makes requests, each
/// in its own thread.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Training/SteppedEnvironment.h"

#include "MLCompilerBridge/Training/EnvironmentSession.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

using namespace MLBridge;
using testing::HasSubstr;

namespace {

/// The trainer's side. Sends commands to the session as messages.
class Trainer {
public:
  explicit Trainer(SteppedEnvironment &Env) : Session(Env) {}

  Span<const TensorView> reset() { return send("reset", std::nullopt); }
  Span<const TensorView> step(std::int64_t Action) {
    return send("step", Action);
  }
  static std::int64_t number(Span<const TensorView> Reply,
                             std::string_view Name) {
    Expected<std::int64_t> Value = Advice(Reply).get<std::int64_t>(Name);
    EXPECT_TRUE(Value) << Value.takeError().str();
    return Value ? *Value : -1;
  }
  static std::string text(Span<const TensorView> Reply, std::string_view Name) {
    Expected<std::string> Value = Advice(Reply).get<std::string>(Name);
    return Value ? *Value : Value.takeError().str();
  }

private:
  Span<const TensorView> send(std::string_view Command,
                              std::optional<std::int64_t> Action) {
    Message.clear();
    Message.set("_command", Command);
    if (Action)
      Message.set("action", *Action);
    return Session.reply(Message.tensors());
  }

  EnvironmentSession Session;
  FeatureSet Message;
};

/// Runs one episode of a compiler that adds up \p Steps actions.
void runEpisode(SteppedEnvironment &Env, int Steps, std::int64_t &Sum) {
  Sum = 0;
  auto Observe = [&](FeatureSet &Into) { Into.set("sum", Sum); };
  for (int I = 0; I != Steps; ++I) {
    const Advice *Action =
        Env.act(Observe, I % 2 ? "odd" : "even", double(Sum));
    if (!Action)
      return;
    Sum += *Action->get<std::int64_t>();
  }
  Env.endEpisode(double(10 * Sum), Observe,
                 R"({"steps":)" + std::to_string(Steps) + "}");
}

TEST(SteppedEnvironment, Episodes) {
  SteppedEnvironment Env;
  std::thread Compiler([&] {
    std::int64_t Sum = 0;
    for (int Steps = 1; Env.waitForReset(); ++Steps)
      runEpisode(Env, Steps, Sum);
  });
  Trainer T(Env);
  for (int Steps = 1; Steps != 4; ++Steps) {
    Span<const TensorView> Reply = T.reset();
    EXPECT_EQ(Trainer::number(Reply, "sum"), 0);
    EXPECT_EQ(Trainer::text(Reply, "_agent"), "even");
    for (int I = 0; I != Steps; ++I) {
      EXPECT_FALSE(*Advice(Reply).get<bool>("_terminated"));
      Reply = T.step(5);
      EXPECT_EQ(Trainer::number(Reply, "sum"), 5 * (I + 1));
    }
    EXPECT_TRUE(*Advice(Reply).get<bool>("_terminated"));
    EXPECT_EQ(*Advice(Reply).get<double>("_reward"), 50.0 * Steps);
    EXPECT_EQ(Trainer::text(Reply, "_info"),
              "{\"steps\":" + std::to_string(Steps) + "}");
  }
  Env.stop({ErrorCode::PeerClosed, "enough"});
  Compiler.join();
  EXPECT_THAT(Trainer::text(T.reset(), "_error"), HasSubstr("enough"));
}

TEST(SteppedEnvironment, AbandonedEpisode) {
  SteppedEnvironment Env;
  int Abandoned = 0;
  std::thread Compiler([&] {
    std::int64_t Sum = 0;
    while (Env.waitForReset()) {
      runEpisode(Env, 3, Sum);
      Abandoned += Sum != 3;
    }
  });
  Trainer T(Env);
  T.reset();
  T.step(1);
  EXPECT_EQ(Trainer::number(T.reset(), "sum"), 0);
  EXPECT_EQ(Trainer::number(T.reset(), "sum"), 0);
  for (int I = 0; I != 3; ++I)
    T.step(1);
  Env.stop({ErrorCode::PeerClosed, "enough"});
  Compiler.join();
  EXPECT_EQ(Abandoned, 2);
}

TEST(SteppedEnvironment, FailedEpisode) {
  SteppedEnvironment Env;
  std::thread Compiler([&] {
    auto Observe = [](FeatureSet &Into) { Into.set("x", 1); };
    while (Env.waitForReset())
      if (Env.act(Observe))
        Env.failEpisode({ErrorCode::Model, "no such register"});
  });
  Trainer T(Env);
  for (int I = 0; I != 2; ++I) {
    EXPECT_EQ(Trainer::number(T.reset(), "x"), 1);
    Span<const TensorView> Reply = T.step(1);
    EXPECT_THAT(Trainer::text(Reply, "_error"), HasSubstr("no such register"));
    EXPECT_EQ(Trainer::text(Reply, "_code"), "Model");
    EXPECT_THAT(Trainer::text(T.step(1), "_error"), HasSubstr("reset first"));
  }
  Env.stop({ErrorCode::PeerClosed, "enough"});
  Compiler.join();
}

TEST(SteppedEnvironment, TrainerThatCannotBeReached) {
  SteppedEnvironment Env;
  ASSERT_FALSE(Env.serve("nothing:x"));
  EXPECT_FALSE(Env.waitForReset());
  EXPECT_THAT(Env.result().str(), HasSubstr("nothing"));
  EXPECT_EQ(Env.act([](FeatureSet &) {}), nullptr);
}

} // namespace
