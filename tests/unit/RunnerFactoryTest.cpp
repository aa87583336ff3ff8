//===- RunnerFactoryTest.cpp - From a spec to a runner --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RunnerFactory: the library's schemes, decorators, and additional schemes.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/RunnerFactory.h"

#include "FunctionRunner.h"
#include "support/EchoModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

static std::string createError(const RunnerFactory &Factory,
                               std::string_view Spec) {
  Expected<std::unique_ptr<MLModelRunner>> Runner = Factory.create(Spec);
  EXPECT_FALSE(Runner) << Spec;
  EXPECT_EQ(Runner.code(), ErrorCode::InvalidArgument) << Spec;
  return std::string(Runner.message());
}

static std::string createError(std::string_view Spec) {
  return createError(RunnerFactory(), Spec);
}

TEST(RunnerFactoryTest, MakesEachScheme) {
  TemporaryDirectory Directory;
  std::string Log = Directory.path("log");
  struct Case {
    std::string Spec, Description;
  };
  for (const Case &C : {
           Case{"none", "none"},
           Case{"fallback|none", "fallback|none"},
           Case{"record:" + Log + "|none", "record:" + Log + "|none"},
           Case{"fallback|record:" + Log + "|fallback|none",
                "fallback|record:" + Log + "|fallback|none"},
       }) {
    Expected<std::unique_ptr<MLModelRunner>> Runner = createModelRunner(C.Spec);
    ASSERT_TRUE(Runner) << Runner.message();
    EXPECT_EQ((*Runner)->describe(), C.Description);
    EXPECT_EQ((*Runner)->tryEvaluate<int>().code(), ErrorCode::Deferred);
  }

  // A pipe connects at the first request, so creating a runner needs no model.
  Expected<std::unique_ptr<MLModelRunner>> Pipe = createModelRunner(
      "pipe:" + Directory.path("p") +
      "?serdes=json&connect=10ms&max-message=1MiB&timeout=20ms");
  ASSERT_TRUE(Pipe) << Pipe.message();
  EXPECT_THAT((*Pipe)->describe(), HasSubstr("pipe:" + Directory.path("p")));
  EXPECT_EQ((*Pipe)->timeout(), std::chrono::milliseconds(20));
  EXPECT_EQ((*Pipe)->tryEvaluate<int>().code(), ErrorCode::Timeout);
}

TEST(RunnerFactoryTest, HelpTextsBeginWithTheirScheme) {
  RunnerFactory Factory;
  EXPECT_GE(Factory.schemes().size(), 4U);
  for (const RunnerFactory::Scheme &S : Factory.schemes())
    EXPECT_EQ(S.Help.find(S.Name), 0U) << S.Name;
}

TEST(RunnerFactoryTest, UnknownSchemesAreAnsweredWithTheKnownOnes) {
  EXPECT_THAT(
      createError("onxx:model.onnx"),
      StartsWith("model spec 'onxx:model.onnx': unknown scheme 'onxx'; "
                 "this build has none, pipe, shm, aot, record, "
                 "replay, fallback; found no module MLBridge-onxx.so in "
                 "MLBRIDGE_MODULES"));
  EXPECT_THAT(createError("fallback|onxx:x"), HasSubstr("'onxx'"));
  EXPECT_THAT(createError("no scheme"), HasSubstr("at position 2"));
}

TEST(RunnerFactoryTest, DecoratorsNeedASpecAndTheOthersTakeNone) {
  EXPECT_THAT(createError("fallback"), HasSubstr("expected '|' and a spec"));
  EXPECT_THAT(createError("record:x"), HasSubstr("expected '|' and a spec"));
  EXPECT_THAT(createError("fallback|"), HasSubstr("after '|'"));
  EXPECT_THAT(createError("none|none"),
              HasSubstr("'none' is not a decorator, found '|none'"));
  EXPECT_THAT(createError("pipe:x|none"), HasSubstr("found '|none'"));
  std::string Deep;
  for (int I = 0; I < 100'000; ++I)
    Deep += "fallback|";
  EXPECT_THAT(createError(Deep + "none"), HasSubstr("more than 32 decorators"));
}

TEST(RunnerFactoryTest, PathsAndOptionsAreChecked) {
  EXPECT_THAT(createError("none:x"), HasSubstr("'none' takes no path"));
  EXPECT_THAT(createError("fallback:x|none"), HasSubstr("takes no path"));
  EXPECT_THAT(createError("pipe"),
              HasSubstr("expected the name at which the model listens"));
  EXPECT_THAT(createError("pipe:?serdes=json"), HasSubstr("expected the name"));
  EXPECT_THAT(createError("record|none"), HasSubstr("expected the log's"));
  EXPECT_THAT(createError("none?x=1"), HasSubstr("unknown option 'x'"));
  EXPECT_THAT(createError("fallback?x=1|none"), HasSubstr("option 'x'"));
  EXPECT_THAT(createError("record:l?x=1|none"), HasSubstr("option 'x'"));
  EXPECT_THAT(createError("pipe:x?serde=json"),
              HasSubstr("known: serdes, connect, max-message, timeout"));
  EXPECT_THAT(createError("pipe:x?connect=5"), HasSubstr("a duration"));
  EXPECT_THAT(createError("pipe:x?timeout=5"), HasSubstr("a duration"));
  EXPECT_THAT(createError("pipe:x?timeout="), HasSubstr("a duration"));
  EXPECT_THAT(createError("none?timeout=soon"), HasSubstr("a duration"));
  Expected<std::unique_ptr<MLModelRunner>> NoCodec =
      createModelRunner("pipe:x?serdes=yaml");
  ASSERT_FALSE(NoCodec);
  EXPECT_THAT(std::string(NoCodec.message()), HasSubstr("yaml"));
}

TEST(RunnerFactoryTest, AVariableThatIsNotSetIsAnError) {
  const char *Missing = std::getenv("MLBRIDGE_NO_SUCH_VARIABLE");
  for (auto &Made : {createModelRunner(Missing).takeError(),
                     RunnerFactory().create(Missing).takeError()}) {
    EXPECT_EQ(Made.code(), ErrorCode::InvalidArgument);
    EXPECT_THAT(std::string(Made.message()), HasSubstr("null"));
  }
  EXPECT_TRUE(createModelRunner("none"));
  EXPECT_TRUE(createModelRunner(std::string("none")));
}

TEST(RunnerFactoryTest, AWrongSpecDoesNotTouchAnOldLog) {
  TemporaryDirectory Directory;
  std::string Log = Directory.path("log");
  std::ofstream(Log) << "precious";
  createError("record:" + Log + "|nothing");
  createError("record:" + Log + "?timeout=soon|none");
  createError("record:" + Log + "?x=y|none");
  std::string Text;
  std::ifstream(Log) >> Text;
  EXPECT_EQ(Text, "precious");
}

TEST(RunnerFactoryTest, ChecksASpecWithoutMakingAnything) {
  TemporaryDirectory Directory;
  RunnerFactory Factory;
  std::string Log = Directory.path("log");
  EXPECT_FALSE(Factory.check("none"));
  EXPECT_FALSE(Factory.check("record:" + Log + "|fallback|pipe:x"));
  EXPECT_FALSE(Factory.check("pipe:x?serdes=json&connect=1s&max-message=1KiB"));
  EXPECT_FALSE(std::filesystem::exists(Log));
  for (std::string_view Wrong :
       {"", "onxx:x", "fallback", "fallback|onxx:x", "fallback|none|none",
        "none:x", "fallback:x|none", "pipe", "record|none", "none?x=1",
        "none?timeout=soon", "fallback?timeout=|none", "fallback?x=1|none",
        "record:l?x=1|none", "pipe:x?timeot=5s", "pipe:x?connect=5",
        "pipe:x?max-message=big", "fallback|pipe:x?serde=json"}) {
    Error E = Factory.check(Wrong);
    EXPECT_EQ(E.code(), ErrorCode::InvalidArgument) << Wrong;
    EXPECT_EQ(E.message(), createError(Wrong));
  }
  Error NoCodec = Factory.check("fallback|pipe:x?serdes=yaml");
  EXPECT_TRUE(NoCodec);
  EXPECT_THAT(std::string(NoCodec.message()), HasSubstr("yaml"));
}

/// Returns the error of a request to a model that does not exist.
static std::string absentModelsError(const RunnerFactory &Factory,
                                     const std::string &Spec) {
  auto Runner = Factory.create(Spec);
  EXPECT_TRUE(Runner) << Runner.message();
  if (!Runner)
    return {};
  Expected<int> Reply = (*Runner)->tryEvaluate<int>();
  EXPECT_EQ(Reply.code(), ErrorCode::Timeout);
  return std::string(Reply.message());
}

TEST(RunnerFactoryTest, MayHaveItsOwnConnectTimeout) {
  TemporaryDirectory Directory;
  std::string Pipe = "pipe:" + Directory.path("p");
  RunnerFactory Factory;
  EXPECT_EQ(Factory.connectTimeout(), std::chrono::seconds(30));
  Factory.setConnectTimeout(std::chrono::milliseconds(11));
  EXPECT_THAT(absentModelsError(Factory, Pipe), HasSubstr("within 11 ms"));
  EXPECT_THAT(absentModelsError(Factory, "record:" + Directory.path("log") +
                                             "|" + Pipe + "?serdes=json"),
              HasSubstr("within 11 ms"));
  EXPECT_THAT(absentModelsError(Factory, Pipe + "?connect=12ms"),
              HasSubstr("within 12 ms"));
}

TEST(RunnerFactoryTest, TheOutermostTimeoutWins) {
  TemporaryDirectory Directory;
  std::string Record = "record:" + Directory.path("log");
  auto TimeoutOf = [](const std::string &Spec) {
    auto Runner = createModelRunner(Spec);
    EXPECT_TRUE(Runner) << Runner.message();
    return Runner ? (*Runner)->timeout() : Duration();
  };
  using namespace std::chrono_literals;
  EXPECT_EQ(TimeoutOf("none"), 30s);
  EXPECT_EQ(TimeoutOf("none?timeout=5s"), 5s);
  EXPECT_EQ(TimeoutOf("none?timeout=0s"), 0s);
  EXPECT_EQ(TimeoutOf("none?timeout=inf"), Duration::max());
  EXPECT_EQ(TimeoutOf("fallback|none?timeout=5s"), 5s);
  EXPECT_EQ(TimeoutOf(Record + "|none?timeout=5s"), 5s);
  EXPECT_EQ(TimeoutOf("fallback|" + Record + "|none?timeout=5s"), 5s);
  EXPECT_EQ(TimeoutOf("fallback?timeout=7s|none?timeout=5s"), 7s);
}

/// A compiler's own scheme, as in docs/guides/extending.md.
static RunnerFactory::Scheme thresholdScheme() {
  return {
      "threshold", "threshold:LIMIT: true below it",
      [](const ModelSpec &Spec,
         const RunnerFactory &) -> Expected<std::unique_ptr<MLModelRunner>> {
        int Limit = std::stoi(Spec.Path);
        return std::make_unique<FunctionRunner>(
            [Limit](const FeatureSet &Features, Deadline, FeatureSet &Out) {
              Out.set("out", *Advice(Features.tensors()).get<int>() < Limit);
              return Error::success();
            });
      }};
}

TEST(RunnerFactoryTest, ChecksAdditionalSchemes) {
  RunnerFactory Factory;
  RunnerFactory::Scheme Careless = thresholdScheme();
  Factory.add(Careless);
  EXPECT_FALSE(Factory.check("fallback|threshold:many?x=1"));
  EXPECT_THAT(Factory.check("threshold:5?timeout=soon").str(),
              HasSubstr("a duration"))
      << "every scheme has a timeout";

  RunnerFactory::Scheme Careful = thresholdScheme();
  Careful.Check = [](const ModelSpec &Spec) {
    if (Spec.Path.find_first_not_of("0123456789") != std::string::npos)
      return Error(ErrorCode::InvalidArgument, "expected a number");
    return Spec.checkOptions({});
  };
  bool Made = false;
  Careful.Make = [&, Make = Careful.Make](const ModelSpec &Spec,
                                          const RunnerFactory &Factory) {
    Made = true;
    return Make(Spec, Factory);
  };
  Factory.add(Careful);
  EXPECT_FALSE(Factory.check("fallback|threshold:5?timeout=1s"));
  for (std::string_view Wrong :
       {"threshold:many", "fallback|threshold:5?x=1"}) {
    EXPECT_EQ(Factory.check(Wrong).message(), createError(Factory, Wrong));
    EXPECT_FALSE(Made) << Wrong;
  }
  EXPECT_TRUE(Factory.create("fallback|threshold:5"));
  EXPECT_TRUE(Made);
}

TEST(RunnerFactoryTest, AMissingComponentIsNotAnInvalidSpec) {
  // The module of this scheme is not installed beside this program.
  Error E = createModelRunner("aoti:model.pt2").takeError();
  EXPECT_EQ(E.code(), ErrorCode::Unsupported);
  EXPECT_THAT(
      E.message(),
      MatchesRegex(
          "model spec 'aoti:model\\.pt2': scheme 'aoti' needs a module; found "
          "no module MLBridge-aoti\\.so in MLBRIDGE_MODULES \\(not set\\), /.* "
          "or the folders of the dynamic linker; run `mlbridge doctor` to find "
          "or install the module, and set MLBRIDGE_MODULES to its folder"));

  // A program must add its own compiled models. No module provides this scheme.
  E = createModelRunner("builtin:policy").takeError();
  EXPECT_EQ(E.code(), ErrorCode::Unsupported);
  EXPECT_EQ(E.message(),
            "model spec 'builtin:policy': expected a model that is linked into "
            "the program and added to its factory (docs/guides/compile.md), "
            "found none");
}

TEST(RunnerFactoryTest, TakesAdditionalSchemes) {
  RunnerFactory Factory;
  Factory.add(thresholdScheme());
  RunnerFactory Copy = Factory;
  auto Runner = Copy.create("fallback|threshold:5?timeout=1s");
  ASSERT_TRUE(Runner) << Runner.message();
  EXPECT_EQ((*Runner)->timeout(), std::chrono::seconds(1));
  (*Runner)->populateFeatures(std::pair{"x", 4});
  EXPECT_TRUE((*Runner)->evaluate<bool>());
  (*Runner)->populateFeatures(std::pair{"x", 5});
  EXPECT_FALSE((*Runner)->evaluate<bool>());

  EXPECT_THAT(createError(Copy, "threshold:5|none"),
              HasSubstr("'threshold' is not a decorator"));
  EXPECT_THAT(createError("threshold:5"), HasSubstr("unknown scheme"))
      << "other factories do not know it";

  std::size_t Before = Factory.schemes().size();
  RunnerFactory::Scheme Replacement = thresholdScheme();
  Replacement.Help = "threshold: another one";
  Factory.add(std::move(Replacement));
  EXPECT_EQ(Factory.schemes().size(), Before);
  EXPECT_TRUE(std::ranges::any_of(Factory.schemes(),
                                  [](const RunnerFactory::Scheme &S) {
                                    return S.Help == "threshold: another one";
                                  }));
}
