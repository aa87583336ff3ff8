//===- TrainingFaultTest.cpp - Faults of trainers -------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests serveEnvironment() with each transport and SerDes. The trainers are
/// late or absent, leave, die at any point, pause for long or send nonsense.
/// The compiler must always return and leave nothing behind.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/SerDes/JSONSerDes.h"
#include "MLCompilerBridge/Training/EnvironmentServer.h"
#include "MLCompilerBridge/Transport/ModelServer.h"

#include "FaultTest.h"

#include <gmock/gmock.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <tuple>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::HasSubstr;

namespace {

/// An environment whose observation is its last action. It ends after five
/// steps.
class Echo final : public Environment {
public:
  explicit Echo(std::size_t Size = 1) : Values(Size) {}

  Error reset(FeatureSet &Observation) override {
    Steps = 0;
    return observe(Observation);
  }
  Error step(const Advice &Action, FeatureSet &Observation) override {
    Expected<float> X = Action.get<float>();
    if (!X)
      return X.takeError();
    Values.assign(Values.size(), *X);
    if (++Steps == 5)
      setDone();
    return observe(Observation);
  }
  double reward() const override { return Steps; }

private:
  Error observe(FeatureSet &Observation) {
    Observation.set("values", Span<const float>(Values));
    return Error::success();
  }
  std::vector<float> Values;
  int Steps = 0;
};

/// The trainer in a child process. If a check fails, the process exits with 3.
class Trainer {
public:
  explicit Trainer(const std::string &Name, ModelServerOptions Options = {}) {
    Options.Bare = false;
    auto Listening = ModelServer::listen(Name, Options);
    if (!Listening)
      ::_exit(3);
    Server = std::move(*Listening);
  }

  /// Returns the compiler's next message.
  Advice receive() {
    auto Request = Server->next(Deadline::in(std::chrono::seconds(30)));
    if (!Request)
      ::_exit(4);
    return Advice(Request->Features);
  }
  void say(std::string_view Command, std::optional<float> Action = {}) {
    FeatureSet Message;
    Message.set("_command", Command);
    if (Action)
      Message.set("action", *Action);
    if (Server->reply(Message.tensors()))
      ::_exit(5);
  }
  static void check(bool Condition) {
    if (!Condition)
      ::_exit(3);
  }

  std::unique_ptr<ModelServer> Server;
};

class TrainingFaultTest
    : public testing::TestWithParam<std::tuple<const char *, const char *>> {
protected:
  void SetUp() override { DescriptorsBefore = countOpenDescriptors(); }
  void TearDown() override {
    EXPECT_EQ(countOpenDescriptors(), DescriptorsBefore)
        << "descriptors were left behind";
  }

  std::string spec(const std::string &More = "") const {
    const auto &[Scheme, Format] = GetParam();
    return std::string(Scheme) + ":" + Name + "?serdes=" + Format + More;
  }
  static Error serve(const std::string &Spec, Echo Env = Echo()) {
    return serveEnvironment(Env, Spec);
  }

  TemporaryDirectory Directory;
  std::string Name = Directory.path("trainer");
  std::size_t DescriptorsBefore = 0;
};

std::string nameOf(
    const testing::TestParamInfo<std::tuple<const char *, const char *>> &I) {
  return std::string(std::get<0>(I.param)) + "_" + std::get<1>(I.param);
}

} // namespace

INSTANTIATE_TEST_SUITE_P(All, TrainingFaultTest,
                         testing::Combine(testing::Values("pipe", "shm"),
                                          testing::Values("bitstream", "json")),
                         nameOf);

TEST_P(TrainingFaultTest, EpisodesUntilClose) {
  Child Other([&] {
    Trainer T(Name);
    Trainer::check(T.receive().find("_ready"));
    for (int Episode = 0; Episode < 20; ++Episode) {
      T.say("reset");
      Trainer::check(!*T.receive().get<bool>("_terminated"));
      for (int Step = 1; Step <= 5; ++Step) {
        T.say("step", float(Step));
        Advice A = T.receive();
        Trainer::check((*A.get<std::vector<float>>("values")).front() == Step);
        Trainer::check(*A.get<double>("_reward") == Step);
        Trainer::check(*A.get<bool>("_terminated") == (Step == 5));
      }
    }
    T.say("close");
    return 0;
  });
  Error E = serve(spec());
  EXPECT_FALSE(E) << E.str();
  EXPECT_EQ(Other.wait(), 0);
}

TEST_P(TrainingFaultTest, ObservationsThatGrow) {
  constexpr std::size_t Large = 200'000;
  Child Other([&] {
    Trainer T(Name);
    T.receive();
    T.say("reset");
    T.receive();
    T.say("step", 0.25F);
    auto Values = T.receive().get<std::vector<float>>("values");
    Trainer::check(Values && Values->size() == Large &&
                   Values->back() == 0.25F);
    T.say("close");
    return 0;
  });
  Error E = serve(spec(), Echo(Large));
  EXPECT_FALSE(E) << E.str();
  EXPECT_EQ(Other.wait(), 0);
}

TEST_P(TrainingFaultTest, ATrainerMayComeLater) {
  Child Other([&] {
    std::this_thread::sleep_for(ShortWait);
    Trainer T(Name);
    T.receive();
    T.say("close");
    return 0;
  });
  Error E = serve(spec());
  EXPECT_FALSE(E) << E.str();
}

TEST_P(TrainingFaultTest, AnAbsentTrainerIsATimeout) {
  Clock::time_point Start = Clock::now();
  Error E = serve(spec("&connect=300ms"));
  EXPECT_EQ(E.code(), ErrorCode::Timeout) << E.str();
  EXPECT_THAT(E.message(), HasSubstr(Name));
  EXPECT_LT(Clock::now() - Start, ShortWait + Slack);
}

TEST_P(TrainingFaultTest, ATrainerMayTakeLong) {
  Child Other([&] {
    Trainer T(Name);
    T.receive();
    std::this_thread::sleep_for(ShortWait);
    T.say("reset");
    T.receive();
    std::this_thread::sleep_for(ShortWait);
    T.say("close");
    return 0;
  });
  Error E = serve(spec());
  EXPECT_FALSE(E) << E.str();
  EXPECT_EQ(Other.wait(), 0);
}

TEST_P(TrainingFaultTest, ATrainerMayBeGivenATimeout) {
  Child Other([&] {
    Trainer T(Name);
    T.receive();
    ::pause();
    return 0;
  });
  Clock::time_point Start = Clock::now();
  Error E = serve(spec("&timeout=300ms"));
  EXPECT_EQ(E.code(), ErrorCode::Timeout) << E.str();
  EXPECT_LT(Clock::now() - Start, ShortWait + 2 * Slack);
}

TEST_P(TrainingFaultTest, ATrainerThatLeavesIsDone) {
  Child Other([&] {
    {
      Trainer T(Name);
      T.receive();
      T.say("reset");
      T.receive();
    }
    // The trainer has ended, but its process lives on.
    ::pause();
    return 0;
  });
  Clock::time_point Start = Clock::now();
  Error E = serve(spec());
  EXPECT_FALSE(E) << E.str();
  EXPECT_LT(Clock::now() - Start, 2 * Slack);
}

TEST_P(TrainingFaultTest, ATrainerIsKilledAtEachStep) {
  // The trainer is killed before the first command (0), after the reset (1), or
  // after a later step.
  for (int At = 0; At <= 3; ++At) {
    Child Other([&] {
      Trainer T(Name);
      T.receive();
      for (int Step = 0; Step < At; ++Step) {
        if (Step == 0)
          T.say("reset");
        else
          T.say("step", 1);
        T.receive();
      }
      (void)std::raise(SIGKILL);
      return 0;
    });
    Clock::time_point Start = Clock::now();
    Error E = serve(spec());
    EXPECT_FALSE(E) << At << ": " << E.str();
    EXPECT_LT(Clock::now() - Start, 2 * Slack) << At;
    EXPECT_EQ(Other.wait(), 128 + SIGKILL) << At;
  }
}

TEST_P(TrainingFaultTest, ATrainerIsKilledWhileTheCompilerWorks) {
  Child Other([&] {
    Trainer T(Name);
    T.receive();
    T.say("reset");
    (void)std::raise(SIGKILL);
    return 0;
  });
  class Slow final : public Environment {
    Error reset(FeatureSet &Observation) override {
      std::this_thread::sleep_for(ShortWait);
      Observation.set("values", Values);
      return Error::success();
    }
    Error step(const Advice &, FeatureSet &) override { return {}; }
    // The values are too large for the pipe, so writing them waits for a
    // reader.
    std::vector<float> Values = std::vector<float>(1 << 20);
  } Env;
  Error E = serveEnvironment(Env, spec());
  EXPECT_FALSE(E) << E.str();
}

TEST_P(TrainingFaultTest, AMissingTrainersErrorSaysWhatToStart) {
  class Idle final : public Environment {
    Error reset(FeatureSet &) override { return {}; }
    Error step(const Advice &, FeatureSet &) override { return {}; }
  } Env;
  const std::string Spec = spec();
  const char *Connect = Spec.find('?') == std::string::npos ? "?" : "&";
  Error E = serveEnvironment(Env, Spec + Connect + "connect=50ms");
  EXPECT_EQ(E.code(), ErrorCode::Timeout) << E.str();
  const std::string &Text = E.message();
  EXPECT_NE(Text.find("no trainer at " + Spec.substr(0, Spec.find('?'))),
            std::string::npos)
      << Text;
  EXPECT_NE(Text.find("CompilerEnv"), std::string::npos) << Text;
  EXPECT_EQ(Text.find("mlbridge.serve("), std::string::npos) << Text;
}

TEST_P(TrainingFaultTest, ACompilerIsKilledAtEachStep) {
  for (int At = 0; At <= 2; ++At) {
    Child Compiler([&] {
      class Dying final : public Environment {
      public:
        explicit Dying(int At) : At(At) {}

      private:
        Error reset(FeatureSet &O) override { return observe(O); }
        Error step(const Advice &, FeatureSet &O) override {
          return observe(O);
        }
        Error observe(FeatureSet &O) {
          if (At-- == 0)
            (void)std::raise(SIGKILL);
          O.set("x", 1);
          return Error::success();
        }
        int At;
      } Env(At);
      return serveEnvironment(Env, spec()) ? 1 : 0;
    });
    Trainer T(Name);
    T.receive();
    T.say("reset");
    for (int Step = 0; Step < At; ++Step) {
      T.receive();
      T.say("step", 1);
    }
    Clock::time_point Start = Clock::now();
    while (T.Server->statistics().Open != 0 && Clock::now() < Start + Slack)
      EXPECT_EQ(
          T.Server->next(Deadline::in(std::chrono::milliseconds(10))).code(),
          ErrorCode::Timeout);
    EXPECT_EQ(T.Server->statistics().Open, 0U)
        << At << ": the death was not noticed";
  }
}

TEST_P(TrainingFaultTest, NonsenseIsAnErrorAndTheSessionGoesOn) {
  Child Other([&] {
    Trainer T(Name);
    auto Expect = [&](std::string_view Code, std::string_view Mentions) {
      Advice A = T.receive();
      Trainer::check(*A.get<std::string>("_code") == Code &&
                     A.get<std::string>("_error")->find(Mentions) !=
                         std::string::npos);
    };
    T.receive();
    T.say("step", 1);
    Expect("InvalidArgument", "reset first");
    T.say("dance");
    Expect("InvalidArgument", "dance");
    T.say("reset");
    T.receive();
    T.say("step");
    Expect("InvalidArgument", "action");
    FeatureSet Message;
    Message.set("_command", "step");
    Message.set("action", "left");
    Trainer::check(!T.Server->reply(Message.tensors()));
    Expect("SchemaMismatch", "action");
    T.say("reset");
    Trainer::check(T.receive().find("values"));
    T.say("close");
    return 0;
  });
  Error E = serve(spec());
  EXPECT_FALSE(E) << E.str();
  EXPECT_EQ(Other.wait(), 0);
}

TEST_P(TrainingFaultTest, ATrainersErrorIsReported) {
  Child Other([&] {
    Trainer T(Name);
    T.receive();
    Trainer::check(!T.Server->replyError("out of memory"));
    ::pause();
    return 0;
  });
  Error E = serve(spec());
  EXPECT_EQ(E.code(), ErrorCode::Model) << E.str();
  EXPECT_THAT(E.message(), HasSubstr("out of memory"));
}

TEST(TrainingServerTest, NoCommonFormat) {
  TemporaryDirectory Directory;
  std::string Name = Directory.path("trainer");
  for (std::string Scheme : {"pipe:", "shm:"}) {
    Child Other([&] {
      ModelServerOptions Options;
      // This trainer uses JSON although the compiler announces bitstream.
      Options.Formats.add<JSONSerDes>("bitstream", "");
      Trainer T(Name, Options);
      // The compiler's request is malformed as JSON, so the trainer replies
      // with an error in JSON.
      (void)T.Server->next(Deadline::in(std::chrono::seconds(30)));
      return 0;
    });
    Echo Env;
    Error E = serveEnvironment(Env, Scheme + Name);
    EXPECT_EQ(E.code(), ErrorCode::Malformed) << E.str();
    EXPECT_THAT(E.message(), HasSubstr(Scheme + Name));
  }
}

TEST(TrainingServerTest, OwnSchemes) {
  Echo Env;
  EnvironmentServer Server;
  std::string Served;
  Server.add({"mine",
              [&](Environment &, std::string_view Spec, const SerDesFactory &) {
                Served = Spec;
                return Error::success();
              }});
  EXPECT_FALSE(Server.serve(Env, "mine:here"));
  EXPECT_EQ(Served, "mine:here");
  EXPECT_THAT(Server.serve(Env, "thine:there").message(),
              HasSubstr("pipe, shm, mine"));
}

TEST(TrainingServerTest, InvalidSpecs) {
  Echo Env;
  auto Serve = [&](std::string_view Spec) {
    return serveEnvironment(Env, Spec);
  };
  for (auto [Spec, Mentions] : {std::pair{"", "empty"},
                                {"none", "pipe, shm"},
                                {"pipe:", "name"},
                                {"shm", "name"},
                                {"pipe:/tmp/x?colour=red", "colour"},
                                {"pipe:/tmp/x?serdes=morse", "morse"},
                                {"pipe:/tmp/x?timeout=soon", "soon"},
                                {"pipe:/tmp/x|none", "|"}}) {
    Error E = Serve(Spec);
    EXPECT_EQ(E.code(), ErrorCode::InvalidArgument) << Spec << E.str();
    EXPECT_THAT(E.message(), HasSubstr(Mentions));
  }
}

/// Runs the main() of the documentation as a user starts it by hand.
TEST(TrainingSpec, AMissingVariablesErrorSaysHowToStart) {
  class Idle final : public Environment {
    Error reset(FeatureSet &) override { return {}; }
    Error step(const Advice &, FeatureSet &) override { return {}; }
  } Env;
  const char *Missing = std::getenv("MLBRIDGE_NO_SUCH_VARIABLE");
  for (const Error &E :
       {serveEnvironment(Env, Missing), serveEnvironment(Env, ""),
        EnvironmentServer().serve(Env, Missing),
        EnvironmentServer().serve(Env, std::string())}) {
    EXPECT_EQ(E.code(), ErrorCode::InvalidArgument) << E.str();
    EXPECT_NE(E.message().find("MLBRIDGE_SPEC"), std::string_view::npos)
        << E.str();
    EXPECT_NE(E.message().find("CompilerEnv"), std::string_view::npos)
        << E.str();
  }
}
