//===- RecordModelRunnerTest.cpp - A log of requests and decisions --------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests RecordModelRunner: the bytes of the log, which requests are recorded,
/// and the errors if an observation does not fit the log or cannot be written.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/RecordModelRunner.h"

#include "FunctionRunner.h"
#include "MLCompilerBridge/Runners/FallbackModelRunner.h"
#include "MLCompilerBridge/Runners/NoneModelRunner.h"
#include "RecordingTest.h"
#include "support/AllocationCounter.h"
#include "support/Child.h"
#include "support/EchoModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// The bytes of \p Values in memory, concatenated.
template <typename... Ts> static std::string raw(const Ts &...Values) {
  std::string Out;
  (Out.append(reinterpret_cast<const char *>(&Values), sizeof(Values)), ...);
  return Out;
}

namespace {
class RecordModelRunnerTest : public RecordingTest {};
} // namespace

/// A model that replies `out`, twice the feature `x`.
static std::unique_ptr<FunctionRunner> doubling() {
  return std::make_unique<FunctionRunner>([](const FeatureSet &Features,
                                             Deadline, FeatureSet &Out) {
    Out.set("out", 2 * *Advice({Features.find("x"), 1}).get<std::int64_t>());
    return Error::success();
  });
}

/// Sends the feature x and expects the model's reply.
static void ask(MLModelRunner &Runner, std::int64_t X) {
  Runner.populateFeatures(std::pair{"x", X});
  Expected<std::int64_t> Reply = Runner.tryEvaluate<std::int64_t>();
  ASSERT_TRUE(Reply) << Reply.takeError().str();
  EXPECT_EQ(*Reply, 2 * X);
}

/// Sends the feature x and expects a deferral.
static void askDeferring(MLModelRunner &Runner, std::int64_t X) {
  Runner.populateFeatures(std::pair{"x", X});
  Expected<bool> Reply = Runner.tryEvaluate<bool>();
  ASSERT_EQ(Reply.code(), ErrorCode::Deferred) << Reply.takeError().str();
}

static constexpr std::int64_t operator""_i64(unsigned long long Value) {
  return static_cast<std::int64_t>(Value);
}

//===----------------------------------------------------------------------===//
// The format, byte for byte
//===----------------------------------------------------------------------===//

const char *const DoublingHeader =
    R"({"features":[{"name":"x","type":"int64_t","port":0,"shape":[1]},)"
    R"({"name":"out","type":"int64_t","port":0,"shape":[1]}],)"
    R"("advice":{"name":"out","type":"int64_t","port":0,"shape":[1]}})"
    "\n";

TEST_F(RecordModelRunnerTest, WritesTheModelsDecisions) {
  auto Runner = record(doubling());
  EXPECT_EQ(Runner->describe(), "record:" + Path + "|function");
  ask(*Runner, 3);
  ask(*Runner, 4);
  ASSERT_FALSE(Runner->flush());
  EXPECT_EQ(log(), DoublingHeader + std::string("{\"context\":\"\"}\n") +
                       "{\"observation\":0}\n" + raw(3_i64, 6_i64) + "\n" +
                       "{\"observation\":1}\n" + raw(4_i64, 8_i64) + "\n");
  std::string Flushed = log();
  Runner.reset();
  EXPECT_EQ(log(), Flushed) << "nothing is written twice";
}

TEST_F(RecordModelRunnerTest, WritesRewards) {
  auto Runner = record(doubling());
  Runner->switchContext("f");
  ask(*Runner, 1);
  EXPECT_FALSE(Runner->logOutcome(0.5));
  ask(*Runner, 2);
  EXPECT_FALSE(Runner->logOutcome(7));
  EXPECT_FALSE(Runner->logOutcome(-1.25)) << "the last outcome wins";
  Runner.reset();
  EXPECT_EQ(
      log(),
      R"({"features":[{"name":"x","type":"int64_t","port":0,"shape":[1]},)"
      R"({"name":"out","type":"int64_t","port":0,"shape":[1]}],)"
      R"("score":{"name":"reward","type":"double","port":0,"shape":[1]},)"
      R"("advice":{"name":"out","type":"int64_t","port":0,"shape":[1]}})"
      "\n{\"context\":\"f\"}\n"
      "{\"observation\":0}\n" +
          raw(1_i64, 2_i64) + "\n{\"outcome\":0}\n" + raw(0.5) + "\n" +
          "{\"observation\":1}\n" + raw(2_i64, 4_i64) + "\n{\"outcome\":1}\n" +
          raw(-1.25) + "\n");
}

TEST_F(RecordModelRunnerTest, WritesWhatTheCompilerDecidedInstead) {
  auto Runner = record(doubling());
  ask(*Runner, 3);
  EXPECT_FALSE(Runner->logOutcome(std::pair{"out", 100_i64}));
  ask(*Runner, 4);
  // This outcome is the same decision in another type.
  EXPECT_FALSE(Runner->logOutcome(std::pair{"out", true}));
  ASSERT_FALSE(Runner->flush());
  EXPECT_THAT(log(), HasSubstr(raw(3_i64, 100_i64) + "\n"));
  EXPECT_THAT(log(), HasSubstr(raw(4_i64, 1_i64) + "\n"));
}

TEST_F(RecordModelRunnerTest, SkipsRequestsWithoutADecision) {
  auto Runner = record();
  askDeferring(*Runner, 1);
  EXPECT_FALSE(Runner->logOutcome(std::pair{"inline", true}));
  askDeferring(*Runner, 2);
  askDeferring(*Runner, 3);
  EXPECT_FALSE(Runner->flush()) << "the third may still be decided";
  EXPECT_FALSE(Runner->logOutcome(std::pair{"inline", false}));
  Runner.reset();
  EXPECT_THAT(log(), EndsWith("{\"context\":\"\"}\n{\"observation\":0}\n" +
                              raw(1_i64, true) + "\n{\"observation\":1}\n" +
                              raw(3_i64, false) + "\n"));
}

TEST_F(RecordModelRunnerTest, EachTypeMapsToOneOfLLVMs) {
  auto Runner = record();
  for (int I = 0; I < 2; ++I) {
    const float Matrix[] = {1, 2, 3, 4, 5, 6};
    Runner->populateFeatures(
        std::pair{"i8", std::int8_t(-1)}, std::pair{"u16", std::uint16_t(2)},
        std::pair{"f32", TensorRef(Span<const float>(Matrix), {2, 3})},
        std::pair{"flag", true}, std::pair{"none", std::vector<double>()},
        std::pair{"text", "h\xC3\xA4"},
        std::pair{"words", std::vector<std::string>{"a", "", "bc"}});
    EXPECT_EQ(Runner->tryEvaluate<bool>().code(), ErrorCode::Deferred);
    EXPECT_FALSE(Runner->logOutcome(std::pair{"decision", false}));
  }
  Runner.reset();
  std::string Row = raw(std::int8_t(-1), std::uint16_t(2), 1.F, 2.F, 3.F, 4.F,
                        5.F, 6.F, true) +
                    "h\xC3\xA4" + "abc" + raw(false) + "\n";
  EXPECT_EQ(
      log(),
      R"({"features":[{"name":"i8","type":"int8_t","port":0,"shape":[1]},)"
      R"({"name":"u16","type":"uint16_t","port":0,"shape":[1]},)"
      R"({"name":"f32","type":"float","port":0,"shape":[2,3]},)"
      R"({"name":"flag","type":"uint8_t","port":0,"shape":[1],)"
      R"("semantics":"bool"},)"
      R"({"name":"none","type":"double","port":0,"shape":[0]},)"
      R"({"name":"text","type":"uint8_t","port":0,"shape":[3],)"
      R"("semantics":"string"},)"
      R"({"name":"words","type":"uint8_t","port":0,"shape":[3],)"
      R"("semantics":"strings","lengths":[1,0,2]},)"
      R"({"name":"decision","type":"uint8_t","port":0,"shape":[1],)"
      R"("semantics":"bool"}],)"
      R"("advice":{"name":"decision","type":"uint8_t","port":0,"shape":[1],)"
      R"("semantics":"bool"}})"
      "\n{\"context\":\"\"}\n{\"observation\":0}\n" +
          Row + "{\"observation\":1}\n" + Row);
}

TEST_F(RecordModelRunnerTest, CountsPerContext) {
  auto Runner = record(doubling());
  Runner->switchContext("no request here");
  Runner->switchContext("f");
  ask(*Runner, 1);
  ask(*Runner, 2);
  Runner->switchContext("g");
  EXPECT_FALSE(Runner->logOutcome(std::pair{"out", 5_i64}))
      << "belongs to the request in f";
  ask(*Runner, 3);
  Runner->switchContext("f");
  ask(*Runner, 4);
  Runner->switchContext("f");
  ask(*Runner, 5);
  Runner.reset();
  EXPECT_EQ(log(), DoublingHeader + std::string("{\"context\":\"f\"}\n") +
                       "{\"observation\":0}\n" + raw(1_i64, 2_i64) + "\n" +
                       "{\"observation\":1}\n" + raw(2_i64, 5_i64) + "\n" +
                       "{\"context\":\"g\"}\n" + "{\"observation\":0}\n" +
                       raw(3_i64, 6_i64) + "\n" + "{\"context\":\"f\"}\n" +
                       "{\"observation\":2}\n" + raw(4_i64, 8_i64) + "\n" +
                       "{\"observation\":3}\n" + raw(5_i64, 10_i64) + "\n");
}

TEST_F(RecordModelRunnerTest, ContextsAreAlwaysValidText) {
  auto Runner = record(doubling());
  Runner->switchContext("\x01_Z\"f\"\\\n");
  ask(*Runner, 1);
  Runner->switchContext("caf\xC3\xA9");
  ask(*Runner, 1);
  Runner->switchContext("caf\xE9");
  ask(*Runner, 1);
  Runner.reset();
  EXPECT_THAT(log(), HasSubstr(R"({"context":"\u0001_Z\"f\"\\\n"})"
                               "\n"));
  EXPECT_THAT(log(), HasSubstr("{\"context\":\"caf\xC3\xA9\"}\n"));
  EXPECT_THAT(log(), HasSubstr("{\"context\":\"caf\xEF\xBF\xBD\"}\n"));
}

TEST_F(RecordModelRunnerTest, TheRequestIsCopied) {
  auto Runner = record();
  auto Data = std::make_unique<std::vector<std::int64_t>>(3, 7);
  Runner->populateFeatures(std::pair{"x", Span<const std::int64_t>(*Data)});
  EXPECT_EQ(Runner->tryEvaluate<bool>().code(), ErrorCode::Deferred);
  Data.reset();
  EXPECT_FALSE(Runner->logOutcome(std::pair{"inline", true}));
  Runner.reset();
  EXPECT_THAT(log(), EndsWith(raw(7_i64, 7_i64, 7_i64, true) + "\n"));
}

//===----------------------------------------------------------------------===//
// Observations that do not fit the log
//===----------------------------------------------------------------------===//

/// Returns the error if \p Recorder, whose log has an int64 x, gets the
/// features that \p Populate sets.
template <typename Function>
static std::string mismatch(MLModelRunner &Recorder, Function Populate) {
  Populate(Recorder);
  Expected<Advice> Reply = Recorder.tryEvaluate<Advice>();
  EXPECT_EQ(Reply.code(), ErrorCode::SchemaMismatch) << Reply.message();
  return Reply.takeError().message();
}

TEST_F(RecordModelRunnerTest, OtherFeaturesAreNamed) {
  auto Runner = record(doubling());
  ask(*Runner, 1);
  EXPECT_EQ(
      mismatch(*Runner,
               [](MLModelRunner &R) { R.populateFeatures(std::pair{"x", 1}); }),
      "record:" + Path +
          ": feature 'x': the log has int64_t[1], found int32_t[1]");
  EXPECT_THAT(mismatch(*Runner,
                       [](MLModelRunner &R) {
                         R.populateFeatures(
                             std::pair{"x", std::vector<std::int64_t>(3)});
                       }),
              EndsWith("the log has int64_t[1], found int64_t[3]"));
  EXPECT_THAT(mismatch(*Runner,
                       [](MLModelRunner &R) {
                         R.populateFeatures(std::pair{"y", 1_i64});
                       }),
              EndsWith("feature 'y': the log has 'x' here"));
  EXPECT_THAT(mismatch(*Runner,
                       [](MLModelRunner &R) {
                         R.populateFeatures(std::pair{"x", 1_i64},
                                            std::pair{"y", 1_i64});
                       }),
              HasSubstr("feature 'y': expected the log's 1 features"));
  EXPECT_THAT(mismatch(*Runner, [](MLModelRunner &) {}),
              HasSubstr("feature 'x': expected by the log, but missing"));
  EXPECT_FALSE(Runner->logOutcome(std::pair{"out", 1_i64}))
      << "after a failure, the compiler's own decision is ignored";
  ask(*Runner, 2);
  Runner.reset();
  EXPECT_EQ(log(), DoublingHeader + std::string("{\"context\":\"\"}\n") +
                       "{\"observation\":0}\n" + raw(1_i64, 2_i64) + "\n" +
                       "{\"observation\":1}\n" + raw(2_i64, 4_i64) + "\n")
      << "no other observation is lost";
}

TEST_F(RecordModelRunnerTest, TextOfAnotherLengthDoesNotFit) {
  auto Runner = record();
  auto Ask = [&](std::string Text, std::vector<std::string> Words) {
    Runner->populateFeatures(std::pair{"text", Text},
                             std::pair{"words", Words});
    Expected<bool> Reply = Runner->tryEvaluate<bool>();
    (void)Runner->logOutcome(std::pair{"inline", true});
    return std::string(Reply.message());
  };
  Ask("abc", {"de", "f"});
  EXPECT_THAT(Ask("xyz", {"uv", "w"}), HasSubstr("decides nothing"));
  EXPECT_THAT(Ask("abcd", {"de", "f"}),
              EndsWith("feature 'text': the log has string of 3 bytes, found "
                       "string of 4 bytes"));
  EXPECT_THAT(Ask("abc", {"d", "ef"}),
              EndsWith("feature 'words': the log has strings of [2,1] bytes, "
                       "found strings of [1,2] bytes"));
}

TEST_F(RecordModelRunnerTest, TheFirstDecidedRequestSetsTheSchema) {
  auto Runner = record();
  Runner->populateFeatures(std::pair{"other", 1.5F});
  EXPECT_EQ(Runner->tryEvaluate<bool>().code(), ErrorCode::Deferred);
  askDeferring(*Runner, 1);
  EXPECT_FALSE(Runner->logOutcome(std::pair{"inline", true}));
  Runner.reset();
  EXPECT_THAT(log(), StartsWith(R"({"features":[{"name":"x")"));
}

TEST_F(RecordModelRunnerTest, DecisionsMustBeAlike) {
  auto Runner = record();
  askDeferring(*Runner, 1);
  EXPECT_FALSE(Runner->logOutcome(std::pair{"inline", true}));
  askDeferring(*Runner, 2);
  EXPECT_THAT(Runner->logOutcome(std::pair{"inline", 2}).message(),
              HasSubstr("bool cannot represent"));
  EXPECT_THAT(
      Runner->logOutcome(std::pair{"inline", std::vector<bool>(2)}).message(),
      HasSubstr("the log has bool[1], found bool[2]"));
  EXPECT_EQ(Runner->logOutcome(std::pair{"inline", "yes"}).code(),
            ErrorCode::SchemaMismatch);
  EXPECT_FALSE(Runner->logOutcome(std::pair{"inline", 0}));
  Runner.reset();
  EXPECT_THAT(log(),
              EndsWith("{\"observation\":1}\n" + raw(2_i64, false) + "\n"));
}

TEST_F(RecordModelRunnerTest, AllHaveARewardOrNone) {
  auto Without = record(doubling());
  ask(*Without, 1);
  ask(*Without, 2);
  EXPECT_FALSE(Without->logOutcome(1.0));
  Error E = Without->flush();
  EXPECT_THAT(log(),
              EndsWith("{\"observation\":0}\n" + raw(1_i64, 2_i64) + "\n"))
      << "complete observations are written";
  EXPECT_EQ(E.code(), ErrorCode::SchemaMismatch);
  EXPECT_EQ(E.message(), "record:" + Path +
                             ": the log's observations have no reward, found a "
                             "decision with one");
  Without.reset();

  auto With = record(doubling());
  ask(*With, 1);
  EXPECT_FALSE(With->logOutcome(1.0));
  ask(*With, 2);
  With->populateFeatures(std::pair{"x", 3_i64});
  Expected<int> Next = With->tryEvaluate<int>();
  EXPECT_EQ(Next.code(), ErrorCode::SchemaMismatch);
  EXPECT_THAT(std::string(Next.message()),
              HasSubstr("have a reward, found a decision without one"));
  ask(*With, 4);
  EXPECT_FALSE(With->logOutcome(4.0));
  EXPECT_FALSE(With->flush());
  EXPECT_THAT(log(), EndsWith("{\"observation\":1}\n" + raw(4_i64, 8_i64) +
                              "\n{\"outcome\":1}\n" + raw(4.0) + "\n"));
}

TEST_F(RecordModelRunnerTest, ADecisionIsOneTensor) {
  auto Runner = record(std::make_unique<FunctionRunner>(
      [](const FeatureSet &Features, Deadline, FeatureSet &Out) {
        Out.set("register", 1);
        Out.set("spill", true);
        if (Features.find("out"))
          Out.set("out", 7);
        return Error::success();
      }));
  auto Ask = [&] {
    Runner->populateFeatures(std::pair{"x", 1});
    return Runner->tryEvaluate<Advice>();
  };
  EXPECT_EQ(Ask()->size(), 2U) << "the reply itself is valid";
  EXPECT_FALSE(Runner->logOutcome(std::pair{"register", 1}));
  EXPECT_EQ(Ask()->size(), 2U);
  Expected<Advice> Next = Ask();
  EXPECT_EQ(Next.code(), ErrorCode::SchemaMismatch);
  EXPECT_THAT(std::string(Next.message()),
              HasSubstr("expected one output or one called 'out', found "
                        "'register' int32_t, 'spill' bool"));
  Runner.reset();
  EXPECT_THAT(log(), EndsWith("{\"observation\":0}\n" + raw(1, 1) + "\n"));
}

TEST_F(RecordModelRunnerTest, TheModelsReplyMayDifferFromTheDecision) {
  auto Runner = record(doubling());
  for (std::int64_t X : {1, 2, 3}) {
    ask(*Runner, X);
    EXPECT_FALSE(Runner->logOutcome(std::pair{"inline", X > 1}));
  }
  ask(*Runner, 4);
  testing::internal::CaptureStderr();
  Runner.reset();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              EndsWith("advice 'out': element 0 of int64_t is 8, which bool "
                       "cannot represent\n"))
      << "the last decision is the model's, of another type";
  EXPECT_THAT(log(),
              EndsWith("{\"observation\":2}\n" + raw(3_i64, true) + "\n"));
}

TEST_F(RecordModelRunnerTest, AReplyOfAnotherTypeIsForgottenWithItsRequest) {
  auto Runner = record(std::make_unique<FunctionRunner>(
      [](const FeatureSet &Features, Deadline, FeatureSet &Out) {
        Out.set("out", "no bool");
        return *Advice({Features.find("x"), 1}).get<int>() == 3
                   ? Error::deferred("decide yourself")
                   : Error::success();
      }));
  for (std::int64_t X : {1, 2}) {
    Runner->populateFeatures(std::pair{"x", X});
    EXPECT_TRUE(Runner->tryEvaluate<std::string>());
    EXPECT_FALSE(Runner->logOutcome(std::pair{"inline", true}));
  }
  askDeferring(*Runner, 3);
  testing::internal::CaptureStderr();
  Runner.reset();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(log(),
              EndsWith("{\"observation\":1}\n" + raw(2_i64, true) + "\n"));
}

TEST_F(RecordModelRunnerTest, OutcomesBelongToARequest) {
  auto Runner = record(doubling());
  EXPECT_EQ(Runner->logOutcome(1.0).code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(Runner->logOutcome(std::pair{"out", 1_i64}).code(),
            ErrorCode::InvalidArgument);
  ask(*Runner, 1);
  EXPECT_FALSE(Runner->flush());
  EXPECT_EQ(Runner->logOutcome(1.0).code(), ErrorCode::InvalidArgument)
      << "a written observation cannot change";
}

//===----------------------------------------------------------------------===//
// The recorded runner
//===----------------------------------------------------------------------===//

TEST_F(RecordModelRunnerTest, FailedRequestsAreNotRecorded) {
  Error Next;
  auto Runner = record(std::make_unique<FunctionRunner>(
      [&](const FeatureSet &Features, Deadline, FeatureSet &Out) {
        Out.set("out", Features.tensors()[0]);
        return Next;
      }));
  Runner->populateFeatures(std::pair{"x", 1_i64});
  EXPECT_TRUE(Runner->tryEvaluate<int>());
  Next = Error(ErrorCode::Timeout, "no answer");
  Runner->populateFeatures(std::pair{"x", 2_i64});
  Expected<int> Failed = Runner->tryEvaluate<int>();
  EXPECT_EQ(Failed.takeError().str(), "Timeout: no answer");
  EXPECT_THAT(log(),
              EndsWith("{\"observation\":0}\n" + raw(1_i64, 1_i64) + "\n"))
      << "a failure flushes, since the caller may end the process";
  EXPECT_FALSE(Runner->logOutcome(std::pair{"out", 5_i64}));
  Next = Error::success();
  Runner->populateFeatures(std::pair{"x", 3_i64});
  EXPECT_TRUE(Runner->tryEvaluate<int>());
  Runner.reset();
  EXPECT_THAT(log(),
              EndsWith("{\"observation\":0}\n" + raw(1_i64, 1_i64) +
                       "\n{\"observation\":1}\n" + raw(3_i64, 3_i64) + "\n"));
}

TEST_F(RecordModelRunnerTest, PassesEverythingOn) {
  Duration Left{};
  auto Owned = std::make_unique<FunctionRunner>(
      [&](const FeatureSet &, Deadline Until, FeatureSet &Out) {
        Left = Until.remaining();
        Out.set("out", 1);
        return Error::success();
      });
  FunctionRunner &Inner = *Owned;
  Inner.setTimeout(std::chrono::minutes(1));
  auto Runner = record(std::move(Owned));
  EXPECT_EQ(Runner->timeout(), std::chrono::minutes(1));
  Runner->setTimeout(std::chrono::hours(1));
  Runner->switchContext("f");
  EXPECT_EQ(Runner->evaluate<int>(), 1);
  EXPECT_GT(Left, std::chrono::minutes(59));
  EXPECT_FALSE(Runner->logOutcome(std::pair{"out", 0}, 0.5));
  Inner.OutcomeError = Error(ErrorCode::Model, "cannot learn");
  EXPECT_EQ(Runner->logOutcome(0.25).code(), ErrorCode::Model);
  using Outcome = std::pair<std::string, std::optional<double>>;
  EXPECT_THAT(Inner.Outcomes,
              ElementsAre(Outcome("out", 0.5), Outcome("", 0.25)));
  EXPECT_THAT(Inner.Contexts, ElementsAre("f"));
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

TEST_F(RecordModelRunnerTest, AnOldLogIsTruncated) {
  std::ofstream(Path) << std::string(10'000, 'x');
  record().reset();
  EXPECT_EQ(log(), "");
}

TEST_F(RecordModelRunnerTest, AnOldLogIsKeptUntilTheModelReplies) {
  const std::string Old(10'000, 'x');
  Error Next(ErrorCode::Timeout, "no model");
  auto Model = [&Next](const FeatureSet &, Deadline, FeatureSet &Out) {
    Out.set("out", 1_i64);
    return Next;
  };
  auto Ask = [](MLModelRunner &Runner) {
    Runner.populateFeatures(std::pair{"x", 1_i64});
    return Runner.tryEvaluate<int>().code();
  };

  std::ofstream(Path) << Old;
  auto Runner = record(std::make_unique<FunctionRunner>(Model));
  EXPECT_EQ(Ask(*Runner), ErrorCode::Timeout);
  EXPECT_FALSE(Runner->flush());
  EXPECT_EQ(log(), Old);
  Runner.reset();
  EXPECT_EQ(log(), Old) << "the destructor must keep the old log";

  Runner = record(std::make_unique<FunctionRunner>(Model));
  EXPECT_EQ(Ask(*Runner), ErrorCode::Timeout);
  Next = Error::success();
  EXPECT_EQ(Ask(*Runner), ErrorCode::Success);
  EXPECT_EQ(log(), "");
  Runner.reset();
  EXPECT_THAT(log(), StartsWith("{\"features\""));
  EXPECT_THAT(log(),
              EndsWith("{\"observation\":0}\n" + raw(1_i64, 1_i64) + "\n"));
}

TEST_F(RecordModelRunnerTest, AnErrorNamesTheFile) {
  auto CreateError = [](std::string Where) {
    Expected<std::unique_ptr<RecordModelRunner>> Made =
        RecordModelRunner::create(std::move(Where),
                                  std::make_unique<NoneModelRunner>());
    EXPECT_FALSE(Made);
    return Made.takeError();
  };
  Error Missing = CreateError(Directory.path("no/such/log"));
  EXPECT_EQ(Missing.code(), ErrorCode::System);
  EXPECT_EQ(Missing.message(), "cannot create the log '" +
                                   Directory.path("no/such/log") +
                                   "': No such file or directory");
  EXPECT_EQ(CreateError(Directory.path()).message(),
            "cannot create the log '" + Directory.path() +
                "': expected a regular file, found a folder");

  // Opening a FIFO would wait for a reader, and writing might kill the
  // compiler.
  ASSERT_EQ(::mkfifo(Path.c_str(), 0600), 0);
  Error Fifo = CreateError(Path);
  EXPECT_EQ(Fifo.code(), ErrorCode::InvalidArgument);
  EXPECT_THAT(Fifo.message(),
              HasSubstr("expected a regular file, found a FIFO"));
}

TEST_F(RecordModelRunnerTest, TwoRecordersDoNotShareALog) {
  auto First = record(doubling());
  ask(*First, 1);
  EXPECT_FALSE(First->flush());
  std::string Before = log();
  Expected<std::unique_ptr<RecordModelRunner>> Second =
      RecordModelRunner::create(Path, std::make_unique<NoneModelRunner>());
  EXPECT_EQ(Second.code(), ErrorCode::System);
  EXPECT_THAT(std::string(Second.message()), HasSubstr("another runner"));
  EXPECT_EQ(log(), Before);
  First.reset();
  EXPECT_NE(record(), nullptr) << "the recorder must release the lock";
}

TEST_F(RecordModelRunnerTest, AFullDiskIsAnError) {
  Path = "/dev/full";
  auto Runner = record(doubling());
  ask(*Runner, 1);
  Error E = Runner->flush();
  EXPECT_EQ(E.code(), ErrorCode::System);
  EXPECT_EQ(E.message(),
            "cannot write the log '/dev/full': No space left on device");
  Runner->populateFeatures(std::pair{"x", 2_i64});
  EXPECT_EQ(Runner->tryEvaluate<int>().code(), ErrorCode::System)
      << "the failure persists";
  EXPECT_EQ(Runner->flush().code(), ErrorCode::System);

  testing::internal::CaptureStderr();
  Runner.reset();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "already reported";
}

TEST_F(RecordModelRunnerTest, AFullDiskIsFoundWhileAsking) {
  Path = "/dev/full";
  auto Runner = record(doubling());
  Expected<int> Reply = 0;
  int Asked = 0;
  for (; Reply && Asked < 10'000; ++Asked) {
    Runner->populateFeatures(std::pair{"x", 1_i64});
    Reply = Runner->tryEvaluate<int>();
  }
  EXPECT_EQ(Reply.code(), ErrorCode::System);
  EXPECT_LT(Asked, 10'000);
}

TEST_F(RecordModelRunnerTest, TheDestructorPrintsAnUnreportedError) {
  Path = "/dev/full";
  auto Runner = record(doubling());
  ask(*Runner, 1);
  testing::internal::CaptureStderr();
  Runner.reset();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "error: record:/dev/full|function: System: cannot write the log "
            "'/dev/full': No space left on device\n");
}

TEST_F(RecordModelRunnerTest, TheDestructorPrintsAnErrorHiddenByTheModels) {
  Path = "/dev/full";
  Error Next;
  auto Failing = [&Next](const FeatureSet &, Deadline, FeatureSet &Out) {
    Out.set("out", 1_i64);
    return Next;
  };
  auto Runner = record(std::make_unique<FunctionRunner>(Failing));
  Runner->populateFeatures(std::pair{"x", 1_i64});
  EXPECT_TRUE(Runner->tryEvaluate<int>());
  Next = Error(ErrorCode::PeerClosed, "gone");
  Runner->populateFeatures(std::pair{"x", 2_i64});
  EXPECT_EQ(Runner->tryEvaluate<int>().code(), ErrorCode::PeerClosed);
  testing::internal::CaptureStderr();
  Runner.reset();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "error: record:/dev/full|function: System: cannot write the log "
            "'/dev/full': No space left on device\n");
}

TEST_F(RecordModelRunnerTest, AnyRunnerCanBeFlushed) {
  auto None = std::make_unique<NoneModelRunner>();
  EXPECT_FALSE(None->flush());
  // Flushing a decorator also flushes the log, whether the log is inside the
  // decorator or around it.
  auto Inner = record(doubling());
  FallbackModelRunner Outer(std::move(Inner));
  ask(Outer, 1);
  EXPECT_FALSE(static_cast<MLModelRunner &>(Outer).flush());
  EXPECT_THAT(log(),
              EndsWith("{\"observation\":0}\n" + raw(1_i64, 2_i64) + "\n"));

  Path = Directory.path("another log");
  auto Full = RecordModelRunner::create("/dev/full", doubling());
  ASSERT_TRUE(Full) << Full.message();
  auto Written =
      record(std::make_unique<FallbackModelRunner>(std::move(*Full)));
  ask(*Written, 1);
  EXPECT_EQ(Written->flush().message(),
            "cannot write the log '/dev/full': No space left on device");
}

TEST_F(RecordModelRunnerTest, AChildDoesNotWriteTheParentsLog) {
  auto Runner = record(doubling());
  ask(*Runner, 1);
  ASSERT_FALSE(Runner->flush());
  ask(*Runner, 2); // This observation is still buffered.
  Child Forked([&] {
    Runner->populateFeatures(std::pair{"x", 7_i64});
    Error E = Runner->tryEvaluate<int>().takeError();
    if (E.code() != ErrorCode::Unsupported ||
        E.message() != "record:" + Path +
                           ": this process was forked from the one that "
                           "writes this log, and cannot write to it; create a "
                           "runner with another log after the fork")
      return 1;
    if (Runner->logOutcome(std::pair{"out", 5_i64}).code() !=
        ErrorCode::Unsupported)
      return 2;
    // The child must not write what the parent has buffered. The parent writes
    // it later.
    if (Runner->flush())
      return 3;
    Runner.reset();
    // A child may write another log.
    Path = Directory.path("child");
    ask(*record(doubling()), 8);
    return 0;
  });
  EXPECT_EQ(Forked.wait(), 0);
  ask(*Runner, 3);
  Runner.reset();
  EXPECT_THAT(log(),
              EndsWith("{\"observation\":0}\n" + raw(1_i64, 2_i64) +
                       "\n{\"observation\":1}\n" + raw(2_i64, 4_i64) +
                       "\n{\"observation\":2}\n" + raw(3_i64, 6_i64) + "\n"));
  Path = Directory.path("child");
  EXPECT_THAT(log(),
              EndsWith("{\"observation\":0}\n" + raw(8_i64, 16_i64) + "\n"));
}

TEST_F(RecordModelRunnerTest, AChildThatLivesOnDoesNotKeepTheLogLocked) {
  auto Runner = record(doubling());
  ask(*Runner, 1);
  Child Forked([] { return ::pause(); });
  Runner.reset();
  EXPECT_NE(record(), nullptr);
}

TEST_F(RecordModelRunnerTest, AChildDoesNotUnlockTheParentsLog) {
  auto Runner = record(doubling());
  Child Forked([&] {
    Runner.reset();
    return 0;
  });
  EXPECT_EQ(Forked.wait(), 0);
  EXPECT_EQ(RecordModelRunner::create(Path, std::make_unique<NoneModelRunner>())
                .code(),
            ErrorCode::System);
}

namespace {
/// Limits the size of this process's files to \p Bytes. As on a full disk, the
/// last write is truncated.
class FileSizeLimit {
public:
  explicit FileSizeLimit(rlim_t Bytes) {
    ::getrlimit(RLIMIT_FSIZE, &Before);
    rlimit Limit = {Bytes, Before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &Limit);
    Handler = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &Before);
    (void)std::signal(SIGXFSZ, Handler);
  }

private:
  rlimit Before{};
  void (*Handler)(int);
};
} // namespace

TEST_F(RecordModelRunnerTest, ALogThatIsCutShortEndsWithAWholeObservation) {
  auto Runner = record(doubling());
  ask(*Runner, 1);
  ASSERT_FALSE(Runner->flush());
  std::string Whole = log();
  ask(*Runner, 2);
  {
    FileSizeLimit Limit(Whole.size() + 5);
    EXPECT_EQ(Runner->flush().code(), ErrorCode::System);
  }
  EXPECT_EQ(log(), Whole);
}

namespace {
/// Replies with the features. Keeps no state.
class Echo final : public MLModelRunner {
public:
  std::string describe() const override { return "echo"; }

protected:
  Expected<Advice> evaluateUntyped(const FeatureSet &Features,
                                   const AdviceSpec &, Deadline) override {
    return Advice(Features.tensors());
  }
};
} // namespace

TEST_F(RecordModelRunnerTest, DoesNotAllocateOnceWarm) {
  auto Runner = record(std::make_unique<Echo>());
  auto Observe = [&](std::int64_t I) {
    Runner->switchContext(I % 2 == 0 ? "a function with quite a long name"
                                     : "another function with a long name");
    Runner->populateFeatures(std::pair{"x", I});
    EXPECT_TRUE(Runner->tryEvaluate<std::int64_t>());
    EXPECT_FALSE(Runner->logOutcome(std::pair{"inline", I % 2}, 1.0));
  };
  constexpr std::int64_t Warm = 5000, Counted = 20'000;
  for (std::int64_t I = 0; I < Warm; ++I)
    Observe(I);
  AllocationCounter Allocations;
  for (std::int64_t I = 0; I < Counted; ++I)
    Observe(I);
  EXPECT_EQ(Allocations.count(), 0U);
}
