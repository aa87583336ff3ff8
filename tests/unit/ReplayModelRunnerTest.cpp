//===- ReplayModelRunnerTest.cpp - The decisions of a log -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests ReplayModelRunner. It replies with the decisions in the log. Its
/// errors name the request that differs from the log, or the damage to the log.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/ReplayModelRunner.h"

#include "FunctionRunner.h"
#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "RecordingTest.h"
#include "support/Child.h"
#include "support/EchoModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sys/stat.h>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

namespace {
class ReplayModelRunnerTest : public RecordingTest {
protected:
  /// Returns the runner for the log, with \p Options in its spec.
  std::unique_ptr<MLModelRunner> replay(const std::string &Options = "") {
    Expected<std::unique_ptr<MLModelRunner>> Made =
        createModelRunner("replay:" + Path + Options);
    EXPECT_TRUE(Made) << Made.message();
    return Made ? std::move(*Made) : nullptr;
  }
  /// Records the requests 10, 20, 30 with the decisions 1, 2, 3.
  void recordThree() {
    auto Runner = record();
    for (std::int64_t I : {1, 2, 3}) {
      Runner->switchContext(I == 1 ? "f" : "g");
      Runner->populateFeatures(std::pair{"x", 10 * I});
      EXPECT_EQ(Runner->tryEvaluate<int>().code(), ErrorCode::Deferred);
      EXPECT_FALSE(Runner->logOutcome(std::pair{"out", I}));
    }
  }
  void write(std::string_view Bytes) const {
    std::ofstream(Path, std::ios::binary) << Bytes;
  }
};
} // namespace

template <typename T = int>
static Expected<T> requestX(MLModelRunner &Runner, std::int64_t X) {
  Runner.populateFeatures(std::pair{"x", X});
  return Runner.tryEvaluate<T>();
}

/// Expects that the request \p X fails with \p Code. Returns the message.
static std::string failure(MLModelRunner &Runner, std::int64_t X,
                           ErrorCode Code) {
  Expected<int> Reply = requestX(Runner, X);
  EXPECT_EQ(Reply.code(), Code) << Reply.message();
  return std::string(Reply.message());
}

//===----------------------------------------------------------------------===//
// The same decisions
//===----------------------------------------------------------------------===//

TEST_F(ReplayModelRunnerTest, RepliesAsTheLogDid) {
  recordThree();
  auto Runner = replay();
  EXPECT_EQ(Runner->describe(), "replay:" + Path);
  for (std::int64_t I : {1, 2, 3})
    EXPECT_EQ(*requestX(*Runner, 10 * I), I);
}

/// A request with a feature of every type and form. \p Seed changes all values.
static void populateAll(MLModelRunner &Runner, int Seed) {
  auto Number = [&](auto Value) {
    using T = decltype(Value);
    return std::vector<T>{T(Seed), std::numeric_limits<T>::lowest(),
                          std::numeric_limits<T>::max()};
  };
  Runner.populateFeatures(
      std::pair{"i8", Number(std::int8_t())},
      std::pair{"i16", Number(std::int16_t())},
      std::pair{"i32", Number(std::int32_t())},
      std::pair{"i64", Number(std::int64_t())},
      std::pair{"u8", Number(std::uint8_t())},
      std::pair{"u16", Number(std::uint16_t())},
      std::pair{"u32", Number(std::uint32_t())},
      std::pair{"u64", Number(std::uint64_t())},
      std::pair{"f", std::vector<float>{float(Seed), NAN, -INFINITY, -0.0F}},
      std::pair{"d", Number(double())}, std::pair{"bool", Seed % 2 == 0},
      std::pair{"none", std::vector<float>()},
      std::pair{"text", std::string(1, char('a' + Seed))},
      std::pair{"texts", std::vector<std::string>{
                             "\n", std::string(2, char('a' + Seed)), ""}});
}

TEST_F(ReplayModelRunnerTest, ReplaysEveryType) {
  constexpr int Count = 20;
  auto Recorder = record(std::make_unique<FunctionRunner>(
      [](const FeatureSet &, Deadline, FeatureSet &Out) {
        static int Asked = 0;
        Out.set("decision", std::vector<double>{0.1 * Asked++, -1});
        return Error::success();
      }));
  for (int I = 0; I < Count; ++I) {
    populateAll(*Recorder, I);
    ASSERT_TRUE(Recorder->tryEvaluate<Advice>());
    ASSERT_FALSE(Recorder->logOutcome(I));
  }
  Recorder.reset();

  auto Runner = replay();
  for (int I = 0; I < Count; ++I) {
    populateAll(*Runner, I);
    Expected<Span<const double>> Reply =
        Runner->tryEvaluate<Span<const double>>();
    ASSERT_TRUE(Reply) << Reply.message();
    EXPECT_THAT(std::vector<double>(Reply->begin(), Reply->end()),
                testing::ElementsAre(0.1 * I, -1));
    // A replay ignores the outcome that the compiler reports.
    EXPECT_FALSE(Runner->logOutcome(std::pair{"other", true}, 3));
  }
}

TEST_F(ReplayModelRunnerTest, ReadsLogsLargerThanItsBuffer) {
  const std::vector<float> Large(100'000, 0.5F);
  auto Both = [&](MLModelRunner &Runner, std::int64_t I) {
    Runner.populateFeatures(std::pair{"x", I}, std::pair{"large", Large});
    return Runner.tryEvaluate<std::int64_t>();
  };
  {
    auto Recorder = record(std::make_unique<FunctionRunner>(
        [](const FeatureSet &Features, Deadline, FeatureSet &Out) {
          Out.set("out", *Advice({Features.find("x"), 1}).get<std::int64_t>());
          return Error::success();
        }));
    for (std::int64_t I = 0; I < 10; ++I)
      ASSERT_TRUE(Both(*Recorder, I));
  }
  auto Runner = replay();
  for (std::int64_t I = 0; I < 10; ++I) {
    Expected<std::int64_t> Reply = Both(*Runner, I);
    ASSERT_TRUE(Reply) << Reply.message();
    EXPECT_EQ(*Reply, I);
  }
}

TEST_F(ReplayModelRunnerTest, AForkedChildContinuesOnItsOwn) {
  recordThree();
  auto Runner = replay();
  ASSERT_EQ(*requestX(*Runner, 10), 1);
  EXPECT_EQ(Child([&] { return *requestX(*Runner, 20) == 2 ? 0 : 1; }).wait(),
            0);
  EXPECT_EQ(*requestX(*Runner, 20), 2);
  EXPECT_EQ(*requestX(*Runner, 30), 3);
}

namespace {
/// A model with the metadata {"key": "a \"value\""}.
class ModelWithMetadata final : public MLModelRunner {
public:
  std::string describe() const override { return "described"; }
  Expected<std::optional<std::string>> metadata(std::string_view Key) override {
    return Key == "key" ? std::optional<std::string>("a \"value\"")
                        : std::nullopt;
  }

protected:
  Expected<Advice> evaluateUntyped(const FeatureSet &, const AdviceSpec &,
                                   Deadline) override {
    return Error::deferred("the compiler decides");
  }
};
} // namespace

TEST_F(ReplayModelRunnerTest, ReplaysTheMetadata) {
  auto Recorder = record(std::make_unique<ModelWithMetadata>());
  ASSERT_EQ(**Recorder->metadata("key"), "a \"value\"");
  ASSERT_FALSE(*Recorder->metadata("other"));
  ASSERT_EQ(requestX(*Recorder, 1).code(), ErrorCode::Deferred);
  ASSERT_FALSE(Recorder->logOutcome(std::pair{"out", 2}));
  Recorder.reset();
  EXPECT_THAT(log(), HasSubstr(R"(,"metadata":{"key":"a \"value\""}})"));

  auto Runner = replay();
  Expected<std::optional<std::string>> Value = Runner->metadata("key");
  ASSERT_TRUE(Value && *Value);
  EXPECT_EQ(**Value, "a \"value\"");
  EXPECT_FALSE(*Runner->metadata("other"));
  EXPECT_EQ(*requestX(*Runner, 1), 2);
}

//===----------------------------------------------------------------------===//
// A part of a log
//===----------------------------------------------------------------------===//

TEST_F(ReplayModelRunnerTest, DefersAfterUntil) {
  recordThree();
  auto Runner = replay("?until=2");
  EXPECT_EQ(*requestX(*Runner, 10), 1);
  EXPECT_EQ(*requestX(*Runner, 20), 2);
  // After the last replayed request, the requests may differ from the log and
  // may outnumber it.
  for (std::int64_t X : {77, 78, 79})
    EXPECT_EQ(failure(*Runner, X, ErrorCode::Deferred),
              "replay:" + Path + ": the compiler decides after request 2");
}

TEST_F(ReplayModelRunnerTest, DefersAfterTheEnd) {
  recordThree();
  auto Runner = replay("?until=end");
  EXPECT_EQ(*requestX(*Runner, 10), 1);
  EXPECT_EQ(*requestX(*Runner, 20), 2);
  EXPECT_EQ(*requestX(*Runner, 30), 3);
  for (std::int64_t X : {77, 78})
    EXPECT_EQ(failure(*Runner, X, ErrorCode::Deferred),
              "replay:" + Path + ": the compiler decides after request 3");
  // A request of the log must still equal the log's.
  auto Other = replay("?until=end");
  EXPECT_THAT(failure(*Other, 11, ErrorCode::Model), HasSubstr("expected 10"));
}

TEST_F(ReplayModelRunnerTest, ChecksItsSpec) {
  recordThree();
  auto Check = [](const std::string &Spec) {
    return RunnerFactory().check(Spec).message();
  };
  EXPECT_EQ(Check("replay:no/such/log?until=3"), "");
  EXPECT_EQ(Check("replay:no/such/log?until=end"), "");
  EXPECT_THAT(Check("replay:"), HasSubstr("the log's file name"));
  EXPECT_THAT(Check("replay:x?until=0"), HasSubstr("a number of 1 or more"));
  EXPECT_THAT(Check("replay:x?until="), HasSubstr("a number of 1 or more"));
  EXPECT_THAT(Check("replay:x?from=2"), HasSubstr("known: until, timeout"));
  EXPECT_THAT(Check("replay:x|none"), HasSubstr("not a decorator"));
}

//===----------------------------------------------------------------------===//
// Compilations that differ from the log
//===----------------------------------------------------------------------===//

TEST_F(ReplayModelRunnerTest, AnotherValueIsAnError) {
  recordThree();
  auto Runner = replay();
  ASSERT_TRUE(requestX(*Runner, 10));
  const std::string Message =
      "replay:" + Path +
      ": request 2 (observation 0 of 'g'): feature 'x': expected 20, found 21; "
      "replay with the input and the options of the recorded compilation";
  EXPECT_EQ(failure(*Runner, 21, ErrorCode::Model), Message);
  EXPECT_EQ(failure(*Runner, 20, ErrorCode::Model), Message)
      << "the error persists";
}

TEST_F(ReplayModelRunnerTest, OneMoreRequestIsAnError) {
  recordThree();
  auto Runner = replay();
  for (std::int64_t I : {1, 2, 3})
    ASSERT_TRUE(requestX(*Runner, 10 * I));
  EXPECT_EQ(failure(*Runner, 40, ErrorCode::Model),
            "replay:" + Path +
                ": request 4: expected the 3 requests of the log, found one "
                "more");
}

TEST_F(ReplayModelRunnerTest, OtherFeaturesAreAnError) {
  recordThree();
  auto MessageOf = [&](const auto &...Features) {
    auto Runner = replay();
    Runner->populateFeatures(Features...);
    Expected<int> Reply = Runner->tryEvaluate<int>();
    EXPECT_EQ(Reply.code(), ErrorCode::SchemaMismatch) << Reply.message();
    const std::string Start =
        "replay:" + Path + ": request 1 (observation 0 of 'f'): ";
    EXPECT_THAT(std::string(Reply.message()), StartsWith(Start));
    return std::string(Reply.message().substr(Start.size()));
  };
  const std::int64_t X = 10;
  EXPECT_EQ(MessageOf(std::pair{"y", X}), "feature 'y': the log has 'x' here");
  EXPECT_EQ(MessageOf(std::pair{"x", 10}),
            "feature 'x': the log has int64_t[1], found int32_t[1]");
  EXPECT_EQ(MessageOf(std::pair{"x", std::vector<std::int64_t>{10, 11}}),
            "feature 'x': the log has int64_t[1], found int64_t[2]");
  EXPECT_EQ(MessageOf(std::pair{"x", X}, std::pair{"y", X}),
            "feature 'y': expected the log's 1 features, found one more");
  EXPECT_EQ(MessageOf(), "feature 'x': expected by the log, but missing");
}

TEST_F(ReplayModelRunnerTest, NamesTheElementThatDiffers) {
  auto Populate = [](MLModelRunner &Runner, float Third, bool Flag,
                     const char *Text) {
    Runner.populateFeatures(std::pair{"w", std::vector<float>{1, 2, Third, 4}},
                            std::pair{"flag", Flag},
                            std::pair{"text", std::string(Text)});
  };
  {
    auto Recorder = record();
    Populate(*Recorder, 0.1F, true, "abc");
    ASSERT_EQ(Recorder->tryEvaluate<int>().code(), ErrorCode::Deferred);
    ASSERT_FALSE(Recorder->logOutcome(std::pair{"out", 1}));
  }
  auto MessageOf = [&](float Third, bool Flag, const char *Text) {
    auto Runner = replay();
    Populate(*Runner, Third, Flag, Text);
    return std::string(Runner->tryEvaluate<int>().message());
  };
  EXPECT_EQ(MessageOf(0.1F, true, "abc"), "");
  EXPECT_THAT(MessageOf(-3, true, "abc"),
              HasSubstr("feature 'w': element 2: expected 0.1, found -3"));
  EXPECT_THAT(MessageOf(0.1F, false, "abc"),
              HasSubstr("feature 'flag': expected true, found false"));
  EXPECT_THAT(MessageOf(0.1F, true, "abd"),
              HasSubstr("feature 'text': expected 'abc', found 'abd'"));
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

TEST_F(ReplayModelRunnerTest, AnEmptyFileIsALogWithoutRequests) {
  write("");
  EXPECT_THAT(failure(*replay(), 10, ErrorCode::Model),
              EndsWith("request 1: expected the 0 requests of the log, found "
                       "one more"));
}

TEST_F(ReplayModelRunnerTest, AFileThatCannotBeReadIsAnError) {
  auto Code = [&] { return ReplayModelRunner::create(Path).code(); };
  EXPECT_EQ(Code(), ErrorCode::System);
  ASSERT_EQ(::mkfifo(Path.c_str(), 0600), 0);
  EXPECT_EQ(Code(), ErrorCode::InvalidArgument);
}

TEST_F(ReplayModelRunnerTest, ARecorderNeverTruncatesAReplayedLog) {
  recordThree();
  const std::string Whole = log();
  Expected<std::unique_ptr<MLModelRunner>> Both =
      createModelRunner("record:" + Path + "|replay:" + Path);
  EXPECT_EQ(Both.code(), ErrorCode::System);
  EXPECT_THAT(std::string(Both.message()), HasSubstr("another runner"));
  EXPECT_EQ(log(), Whole);

  auto Recorder = record();
  Expected<std::unique_ptr<ReplayModelRunner>> Early =
      ReplayModelRunner::create(Path);
  EXPECT_EQ(Early.code(), ErrorCode::System);
  EXPECT_THAT(std::string(Early.message()), HasSubstr("a recorder is writing"));
}

TEST_F(ReplayModelRunnerTest, ALogCutAnywhereNeverGivesAWrongDecision) {
  {
    auto Recorder = record();
    for (std::int64_t I : {1, 2}) {
      Recorder->populateFeatures(std::pair{"x", 10 * I});
      ASSERT_EQ(Recorder->tryEvaluate<int>().code(), ErrorCode::Deferred);
      ASSERT_FALSE(Recorder->logOutcome(std::pair{"out", I}, 0.5));
    }
  }
  const std::string Whole = log();
  int Complete = 0;
  for (std::size_t Size = 1; Size < Whole.size(); ++Size) {
    write(Whole.substr(0, Size));
    Expected<std::unique_ptr<ReplayModelRunner>> Made =
        ReplayModelRunner::create(Path);
    if (!Made) {
      EXPECT_EQ(Made.code(), ErrorCode::Malformed);
      continue;
    }
    Expected<int> First = requestX(**Made, 10);
    Expected<int> Second = requestX(**Made, 20);
    Complete += bool(First);
    if (First) {
      EXPECT_EQ(*First, 1);
    }
    EXPECT_FALSE(Second) << Size;
    EXPECT_TRUE(Second.code() == ErrorCode::Malformed ||
                Second.code() == ErrorCode::Model)
        << Second.message();
  }
  EXPECT_GT(Complete, 0);
}

TEST_F(ReplayModelRunnerTest, ADamagedLogIsAnError) {
  recordThree();
  const std::string Whole = log();
  const std::string Header = Whole.substr(0, Whole.find('\n') + 1);
  auto MessageOf = [&](const std::string &Bytes) {
    write(Bytes);
    Expected<std::unique_ptr<ReplayModelRunner>> Made =
        ReplayModelRunner::create(Path);
    Error E = Made ? requestX(**Made, 10).takeError() : Made.takeError();
    EXPECT_EQ(E.code(), ErrorCode::Malformed) << E.message();
    EXPECT_THAT(E.message(), HasSubstr("the log '" + Path + "': byte "));
    return E.message();
  };
  EXPECT_THAT(MessageOf("{}\n"), HasSubstr("no \"features\""));
  EXPECT_THAT(MessageOf("{\"features\":[]}\n"), HasSubstr("no features"));
  EXPECT_THAT(MessageOf(Header + "{\"observation\":-1}\n"),
              HasSubstr("found '{\"observation\":-1}'"));
  EXPECT_THAT(MessageOf(Header + "nothing\n"), HasSubstr("found 'nothing'"));
  EXPECT_THAT(MessageOf(Header + "{\"outcome\":0}\n"),
              HasSubstr("before an outcome"));
  EXPECT_THAT(MessageOf(Header + "{\"observation\":0}\n" +
                        std::string(16, 'x') + "y\n"),
              HasSubstr("expected a newline"));
  std::string Huge = Header;
  Huge.replace(Huge.find("[1]"), 3, "[1152921504606846975]");
  EXPECT_THAT(MessageOf(Huge + "{\"observation\":0}\n"),
              HasSubstr("bytes and a newline, found 0 bytes"));
}
