//===- CRunnerTest.cpp - Runners by spec in the C API ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests each kind of runner, with a real peer if it needs a peer, and each way
/// in which a request fails.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge-C/PaperAPI.h"
#include "MLCompilerBridge/Version.h"

#include "capi/CAPITest.h"
#include "support/EchoModel.h"
#include "support/GRPCSanitizers.h"

#ifdef MLBRIDGE_HAS_GRPC
#include "MLCompilerBridge/Transport/gRPCListener.h"
#endif

#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

class CRunnerTest : public testing::Test {
protected:
  std::string spec(const std::string &Scheme,
                   const std::string &Options = "timeout=20s") const {
    return Scheme + ":" + Name + "?" + Options;
  }

  TemporaryDirectory Folder;
  std::string Name = Folder.path("model");
};

std::string contentsOf(const std::string &Path) {
  std::ostringstream Text;
  Text << std::ifstream(Path, std::ios::binary).rdbuf();
  return Text.str();
}

/// Sends a number. An echo model returns the same number.
MLBridgeStatus ask(const RunnerHandle &Model, std::int32_t Number,
                   std::int32_t *Found) {
  mlbridgeSetInt32(mlbridgeGetFeatures(Model.get()), "x", Number);
  return mlbridgeEvaluateInt32(Model.get(), Found);
}

void expectEcho(const std::string &Spec) {
  RunnerHandle Model = makeRunner(Spec);
  for (std::int32_t I : {1, -2}) {
    std::int32_t Found = 0;
    ASSERT_EQ(ask(Model, I, &Found), MLBridgeStatusSuccess) << lastMessage();
    EXPECT_EQ(Found, I);
  }
}

TEST_F(CRunnerTest, PipesAndSharedMemory) {
  EchoModel Model(Name);
  for (const char *Scheme : {"pipe", "shm"})
    for (const char *SerDes : {"bitstream", "json"})
      expectEcho(spec(Scheme, "timeout=20s&serdes=" + std::string(SerDes)));
}

#ifdef MLBRIDGE_HAS_GRPC
TEST_F(CRunnerTest, GRPCIsLoadedWhenItIsNamed) {
  MLBRIDGE_SKIP_GRPC_UNDER_TSAN();
  auto Opened = openGRPCListener("grpc+unix:" + Name);
  ASSERT_TRUE(Opened) << Opened.takeError().str();
  EchoModel Model(serverOf(std::move(*Opened)));
  expectEcho(spec("grpc+unix"));
  EXPECT_EQ(mlbridgeCheckModelSpec("grpc://nowhere"),
            MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("expected //HOST:PORT"));
}
#else
TEST_F(CRunnerTest, GRPCIsUnsupportedInThisBuild) {
  EXPECT_EQ(mlbridgeCheckModelSpec("grpc://localhost:1"),
            MLBridgeStatusUnsupported);
  EXPECT_THAT(lastMessage(), HasSubstr("MLBridge-grpc.so"));
}
#endif

TEST_F(CRunnerTest, ThePartsOfASpecAreNotDecoded) {
  Name = Folder.path("a model? 100%=|&");
  EchoModel Model(Name);
  MLBridgeModelRunnerRef Made = nullptr;
  ASSERT_EQ(mlbridgeCreateModelRunnerAt("pipe", Name.c_str(),
                                        "serdes=json&timeout=20s", &Made),
            MLBridgeStatusSuccess)
      << lastMessage();
  RunnerHandle Owner(Made);
  std::int32_t Found = 0;
  ASSERT_EQ(ask(Owner, 5, &Found), MLBridgeStatusSuccess) << lastMessage();
  EXPECT_EQ(Found, 5);
  int64_t Timeout = 0;
  ASSERT_EQ(mlbridgeGetTimeout(Made, &Timeout), MLBridgeStatusSuccess);
  EXPECT_EQ(Timeout, 20'000'000'000);
  EXPECT_EQ(mlbridgeCreateModelRunnerAt("none", "", nullptr, &Made),
            MLBridgeStatusSuccess);
  mlbridgeDisposeModelRunner(Made);
}

TEST_F(CRunnerTest, NoneDefersAndSaysSo) {
  RunnerHandle Model = makeRunner("none");
  std::int32_t Found = 7;
  EXPECT_EQ(ask(Model, 1, &Found), MLBridgeStatusDeferred);
  EXPECT_EQ(Found, 7);
  EXPECT_THAT(lastMessage(), HasSubstr("'none' decides nothing"));
  EXPECT_STREQ(mlbridgeGetStatusName(MLBridgeStatusDeferred), "Deferred");
}

TEST_F(CRunnerTest, AModelsErrorsAndDeferralsHaveItsMessage) {
  EchoModel Served(Name);
  RunnerHandle Model = makeRunner(spec("pipe"));
  MLBridgeFeatureSetRef Features = mlbridgeGetFeatures(Model.get());
  std::int32_t Found;
  mlbridgeSetString(Features, "control", "fail");
  EXPECT_EQ(mlbridgeEvaluateInt32(Model.get(), &Found), MLBridgeStatusModel);
  EXPECT_THAT(lastMessage(), HasSubstr("the weights are missing"));
  mlbridgeSetString(Features, "control", "defer");
  EXPECT_EQ(mlbridgeEvaluateInt32(Model.get(), &Found), MLBridgeStatusDeferred);
  EXPECT_THAT(lastMessage(), HasSubstr("not my decision"));
  EXPECT_EQ(ask(Model, 4, &Found), MLBridgeStatusSuccess);
}

TEST_F(CRunnerTest, AMissingModelIsATimeoutAndFallbackThenDefers) {
  RunnerHandle Model = makeRunner(spec("pipe", "connect=50ms"));
  std::int32_t Found;
  EXPECT_EQ(ask(Model, 1, &Found), MLBridgeStatusTimeout);
  EXPECT_THAT(lastMessage(), HasSubstr(Name));
  RunnerHandle Fallback = makeRunner("fallback|" + spec("shm", "connect=50ms"));
  EXPECT_EQ(ask(Fallback, 1, &Found), MLBridgeStatusDeferred);
  EXPECT_EQ(ask(Fallback, 1, &Found), MLBridgeStatusDeferred);
}

TEST_F(CRunnerTest, AnAbsentModelIsAwaitedOnce) {
  RunnerHandle Model = makeRunner(spec("pipe", "connect=300ms"));
  const auto Start = std::chrono::steady_clock::now();
  std::int32_t Found = 0;
  for (int I = 0; I < 309; ++I)
    EXPECT_EQ(ask(Model, I, &Found), MLBridgeStatusTimeout);
  EXPECT_LT(std::chrono::steady_clock::now() - Start, std::chrono::seconds(1));
}

TEST_F(CRunnerTest, TimeoutsAreKeptToTheNanosecond) {
  RunnerHandle Model = makeRunner("none?timeout=5s");
  int64_t Found = 0;
  EXPECT_EQ(mlbridgeGetTimeout(Model.get(), &Found), MLBridgeStatusSuccess);
  EXPECT_EQ(Found, 5'000'000'000);
  for (int64_t Wanted : {int64_t(0), int64_t(1), MLBRIDGE_FOREVER}) {
    EXPECT_EQ(mlbridgeSetTimeout(Model.get(), Wanted), MLBridgeStatusSuccess);
    EXPECT_EQ(mlbridgeGetTimeout(Model.get(), &Found), MLBridgeStatusSuccess);
    EXPECT_EQ(Found, Wanted);
  }
  EXPECT_EQ(mlbridgeSetTimeout(Model.get(), -1), MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("found -1"));
}

TEST_F(CRunnerTest, ALogHasContextsDecisionsAndRewards) {
  const std::string Log = Folder.path("x.log");
  RunnerHandle Model = makeRunner("record:" + Log + "|none");
  std::int32_t Found;
  ASSERT_EQ(mlbridgeSwitchContext(Model.get(), "loop.c"),
            MLBridgeStatusSuccess);
  EXPECT_EQ(ask(Model, 12, &Found), MLBridgeStatusDeferred);
  mlbridgeSetBool(mlbridgeGetDecision(Model.get()), "inlined", true);
  const double Reward = 0.25;
  ASSERT_EQ(mlbridgeLogOutcome(Model.get(), &Reward), MLBridgeStatusSuccess)
      << lastMessage();

  // A request has one decision.
  EXPECT_EQ(ask(Model, 13, &Found), MLBridgeStatusDeferred);
  mlbridgeSetBool(mlbridgeGetDecision(Model.get()), "inlined", true);
  mlbridgeSetBool(mlbridgeGetDecision(Model.get()), "unrolled", true);
  EXPECT_EQ(mlbridgeLogOutcome(Model.get(), &Reward),
            MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("expected one decision, found 2"));
  // If setting a decision fails, the decision is not logged.
  mlbridgeSetString(mlbridgeGetDecision(Model.get()), "inlined", nullptr);
  EXPECT_EQ(mlbridgeLogOutcome(Model.get(), &Reward),
            MLBridgeStatusInvalidArgument);
  Model.reset();

  const std::string Text = contentsOf(Log);
  EXPECT_THAT(Text, StartsWith("{\"features\":"));
  EXPECT_THAT(Text, HasSubstr("\"name\":\"x\""));
  EXPECT_THAT(Text, HasSubstr("\"name\":\"inlined\""));
  EXPECT_THAT(Text, HasSubstr("{\"context\":\"loop.c\"}"));
  EXPECT_THAT(Text, HasSubstr("{\"outcome\":0}"));
}

TEST_F(CRunnerTest, ALogThatCannotBeWrittenIsReported) {
  RunnerHandle Model = makeRunner("record:/dev/full|none");
  std::int32_t Found;
  EXPECT_EQ(ask(Model, 12, &Found), MLBridgeStatusDeferred);
  mlbridgeSetBool(mlbridgeGetDecision(Model.get()), "inlined", true);
  ASSERT_EQ(mlbridgeLogOutcome(Model.get(), nullptr), MLBridgeStatusSuccess);
  EXPECT_EQ(mlbridgeFlush(Model.get()), MLBridgeStatusSystem);
  EXPECT_EQ(lastMessage(),
            "cannot write the log '/dev/full': No space left on device");

  EXPECT_EQ(mlbridgeFlush(makeRunner("none").get()), MLBridgeStatusSuccess);
  EXPECT_EQ(mlbridgeFlush(nullptr), MLBridgeStatusInvalidArgument);
}

TEST_F(CRunnerTest, ARewardAloneIsForTheModelsOwnDecision) {
  EchoModel Served(Name);
  const std::string Log = Folder.path("x.log");
  RunnerHandle Model = makeRunner("record:" + Log + "|" + spec("pipe"));
  std::int32_t Found;
  ASSERT_EQ(ask(Model, 3, &Found), MLBridgeStatusSuccess);
  const double Reward = 1;
  EXPECT_EQ(mlbridgeLogOutcome(Model.get(), &Reward), MLBridgeStatusSuccess);
  ASSERT_EQ(ask(Model, 3, &Found), MLBridgeStatusSuccess);
  // In a log, either all outcomes have a reward or none has. This outcome has
  // none, so the next request fails.
  EXPECT_EQ(mlbridgeLogOutcome(Model.get(), nullptr), MLBridgeStatusSuccess);
  EXPECT_EQ(ask(Model, 3, &Found), MLBridgeStatusSchemaMismatch);
}

TEST_F(CRunnerTest, DescriptionsAndSpecs) {
  RunnerHandle Model = makeRunner("fallback|" + spec("pipe"));
  const char *Text = nullptr;
  ASSERT_EQ(mlbridgeDescribeModelRunner(Model.get(), &Text),
            MLBridgeStatusSuccess);
  EXPECT_THAT(Text, HasSubstr("pipe:" + Name));

  EXPECT_EQ(mlbridgeCheckModelSpec("record:x.log|pipe:a?serdes=json"),
            MLBridgeStatusSuccess);
  MLBridgeModelRunnerRef Made = nullptr;
  for (const char *Wrong : {"", "nonsense:x", "pipe:a?serdes=xml",
                            "pipe:a?tiemout=1s", "record:x.log", "none:x"}) {
    EXPECT_EQ(mlbridgeCheckModelSpec(Wrong), MLBridgeStatusInvalidArgument)
        << Wrong;
    EXPECT_EQ(mlbridgeCreateModelRunner(Wrong, &Made),
              MLBridgeStatusInvalidArgument)
        << Wrong;
    EXPECT_NE(lastMessage(), "");
    EXPECT_EQ(Made, nullptr);
  }
}

TEST_F(CRunnerTest, TheHintsFormAndTypeAreChecked) {
  RunnerHandle Model = makeRunner("none");
  MLBridgeAdviceRef Advice;
  EXPECT_EQ(mlbridgeEvaluateAs(Model.get(), MLBridgeForm(3),
                               MLBridgeElementInt32, &Advice),
            MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("MLBridgeForm, found 3"));
  EXPECT_EQ(mlbridgeEvaluateAs(Model.get(), MLBridgeFormScalar,
                               MLBridgeElementType(12), &Advice),
            MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("MLBridgeElementType, found 12"));
}

TEST_F(CRunnerTest, ARequestIsForgottenWhateverComesOfIt) {
  int Asked = 0;
  std::size_t Features = 0;
  ReplyFunction Reply = [&](MLBridgeAdviceRef Request, auto...) {
    ++Asked;
    Features = mlbridgeGetNumTensors(Request);
    return MLBridgeStatusDeferred;
  };
  RunnerHandle Model = makeRunner(Reply);
  MLBridgeAdviceRef Advice;
  auto Set = [&] {
    return mlbridgeSetInt32(mlbridgeGetFeatures(Model.get()), "x", 1);
  };
  const std::function<MLBridgeStatus()> Wrong[] = {
      [&] { return mlbridgeEvaluate(Model.get(), nullptr); },
      [&] {
        return mlbridgeEvaluateAs(Model.get(), MLBridgeForm(77),
                                  MLBridgeElementFloat, &Advice);
      },
      [&] {
        return mlbridgeEvaluateAs(Model.get(), MLBridgeFormAny,
                                  MLBridgeElementType(12), &Advice);
      },
      [&] {
        return mlbridgeEvaluateAs(Model.get(), MLBridgeFormScalar,
                                  MLBridgeElementFloat, nullptr);
      }};
  for (const auto &Evaluate : Wrong) {
    ASSERT_EQ(Set(), MLBridgeStatusSuccess);
    EXPECT_EQ(Evaluate(), MLBridgeStatusInvalidArgument);
    EXPECT_EQ(Asked, 0) << "the error must precede the request";
    EXPECT_EQ(mlbridgeEvaluate(Model.get(), &Advice), MLBridgeStatusDeferred);
    EXPECT_EQ(std::exchange(Asked, 0), 1);
    EXPECT_EQ(Features, 0U);
  }
}

TEST_F(CRunnerTest, WithoutRoomForTheReplyTheModelIsNotAsked) {
  MLBridgeRunnerCallbacks Callbacks = {};
  Callbacks.Size = sizeof(Callbacks);
  Callbacks.Evaluate = [](void *Asked, MLBridgeAdviceRef, std::int64_t,
                          MLBridgeFeatureSetRef Reply) {
    ++*static_cast<int *>(Asked);
    return mlbridgeSetInt32(Reply, "out", 1);
  };
  int Asked = 0;
  MLBridgeRunnerFactoryRef Factory = nullptr;
  ASSERT_EQ(mlbridgeCreateRunnerFactory(&Factory), MLBridgeStatusSuccess);
  ASSERT_EQ(mlbridgeAddScheme(Factory, "own", nullptr, &Callbacks, &Asked),
            MLBridgeStatusSuccess);
  MLBridgeModelRunnerRef Runner = nullptr;
  ASSERT_EQ(mlbridgeCreateModelRunnerWithFactory(Factory, "own", &Runner),
            MLBridgeStatusSuccess);
  std::size_t Count = 0;
  const float *Values = nullptr;
  EXPECT_EQ(mlbridgeEvaluateInt32(Runner, nullptr),
            MLBridgeStatusInvalidArgument);
  EXPECT_STREQ(mlbridgeGetLastErrorMessage(), "'Value' is null");
  EXPECT_EQ(mlbridgeEvaluateFloatVector(Runner, nullptr, &Count),
            MLBridgeStatusInvalidArgument);
  EXPECT_EQ(mlbridgeEvaluateFloatVector(Runner, &Values, nullptr),
            MLBridgeStatusInvalidArgument);
  EXPECT_STREQ(mlbridgeGetLastErrorMessage(), "'Values' or 'Count' is null");
  EXPECT_EQ(mlbridgeEvaluateString(Runner, nullptr, nullptr),
            MLBridgeStatusInvalidArgument);
  EXPECT_EQ(mlbridgeEvaluateStringVector(Runner, nullptr, nullptr),
            MLBridgeStatusInvalidArgument);
  EXPECT_EQ(Asked, 0);
  std::int32_t Value = 0;
  EXPECT_EQ(mlbridgeEvaluateInt32(Runner, &Value), MLBridgeStatusSuccess);
  EXPECT_EQ(Asked, 1);
  mlbridgeDisposeModelRunner(Runner);
  mlbridgeDisposeRunnerFactory(Factory);
}

TEST_F(CRunnerTest, TheLastMessageIsThisThreadsOwn) {
  EXPECT_NE(mlbridgeCheckModelSpec("nonsense:x"), MLBridgeStatusSuccess);
  const std::string Mine = lastMessage();
  EXPECT_THAT(Mine, HasSubstr("nonsense"));
  std::thread([] {
    EXPECT_EQ(lastMessage(), "");
    EXPECT_NE(mlbridgeCheckModelSpec("other:x"), MLBridgeStatusSuccess);
    EXPECT_THAT(lastMessage(), HasSubstr("other"));
  }).join();
  EXPECT_EQ(lastMessage(), Mine);
  // A call that succeeds keeps the last message.
  EXPECT_EQ(mlbridgeCheckModelSpec("none"), MLBridgeStatusSuccess);
  EXPECT_EQ(lastMessage(), Mine);
  EXPECT_EQ(mlbridgeFail(MLBridgeStatusModel, "mine"), MLBridgeStatusModel);
  EXPECT_EQ(lastMessage(), "mine");
  // The new message may lie in the memory of the old message.
  mlbridgeFail(MLBridgeStatusModel, mlbridgeGetLastErrorMessage());
  EXPECT_EQ(lastMessage(), "mine");
  mlbridgeFail(MLBridgeStatusModel, nullptr);
  EXPECT_EQ(lastMessage(), "");
}

TEST_F(CRunnerTest, NamesOfStatusesAndOfTheLibrary) {
  EXPECT_STREQ(mlbridgeGetStatusName(MLBridgeStatusSuccess), "Success");
  EXPECT_STREQ(mlbridgeGetStatusName(MLBridgeStatusInvalidArgument),
               "InvalidArgument");
  EXPECT_STREQ(mlbridgeGetStatusName(MLBridgeStatus(10)), "unknown error");
  EXPECT_STREQ(mlbridgeGetVersion(), MLBRIDGE_VERSION);
}

TEST_F(CRunnerTest, ByThePapersNames) {
  EchoModel Served(Name);
  for (auto Create : {createPipeModelRunner, createSharedMemoryModelRunner})
    for (const char *SerDes : {(const char *)nullptr, "bitstream", "json"}) {
      MLBridgeModelRunnerRef Model = Create(Name.c_str(), SerDes);
      ASSERT_NE(Model, nullptr) << lastMessage();
      const int Ints[] = {12};
      int Int = 0;
      populateIntFeatures(Model, "x", Ints, 1);
      EXPECT_EQ(evaluateIntFeatures(Model, &Int), MLBridgeStatusSuccess);
      EXPECT_EQ(Int, 12);
      const int64_t Longs[] = {int64_t(1) << 60};
      int64_t Long = 0;
      populateLongFeatures(Model, "x", Longs, 1);
      EXPECT_EQ(evaluateLongFeatures(Model, &Long), MLBridgeStatusSuccess);
      EXPECT_EQ(Long, Longs[0]);
      const float Floats[] = {0.5F};
      float Float = 0;
      populateFloatFeatures(Model, "x", Floats, 1);
      EXPECT_EQ(evaluateFloatFeatures(Model, &Float), MLBridgeStatusSuccess);
      EXPECT_EQ(Float, 0.5F);
      const double Doubles[] = {0.1};
      double Double = 0;
      populateDoubleFeatures(Model, "x", Doubles, 1);
      EXPECT_EQ(evaluateDoubleFeatures(Model, &Double), MLBridgeStatusSuccess);
      EXPECT_EQ(Double, 0.1);
      const bool Bools[] = {true};
      bool Bool = false;
      populateBoolFeatures(Model, "x", Bools, 1);
      EXPECT_EQ(evaluateBoolFeatures(Model, &Bool), MLBridgeStatusSuccess);
      EXPECT_TRUE(Bool);
      const char *Texts[] = {"a", "b"}, *Text;
      populateStringFeatures(Model, "x", Texts, 2);
      EXPECT_EQ(evaluateStringFeatures(Model, &Text),
                MLBridgeStatusSchemaMismatch);
      destroyPipeModelRunner(Model);
    }
  EXPECT_EQ(createPipeModelRunner(nullptr, nullptr), nullptr);
  EXPECT_THAT(lastMessage(), HasSubstr("null"));
  EXPECT_EQ(createPipeModelRunner("x", "xml"), nullptr);
  EXPECT_EQ(createPipeModelRunner("x", std::string(100, 'x').c_str()), nullptr);
  EXPECT_THAT(lastMessage(), HasSubstr("too long"));
  destroySharedMemoryModelRunner(nullptr);
}

TEST_F(CRunnerTest, ThePapersRunnersOfOtherComponents) {
  struct {
    MLBridgeModelRunnerRef Model;
    const char *Scheme;
    decltype(destroyTFModelRunner) *Destroy;
  } Made[] = {
      {createGRPCModelRunner("localhost:1"), "grpc", destroyGRPCModelRunner},
      {createONNXModelRunner("policy.onnx"), "onnx", destroyONNXModelRunner},
      {createTFModelRunner("saved_model"), "tf", destroyTFModelRunner}};
  for (auto [Model, Scheme, Destroy] : Made) {
    if (Model) {
      const char *Text;
      EXPECT_EQ(mlbridgeDescribeModelRunner(Model, &Text),
                MLBridgeStatusSuccess);
      EXPECT_THAT(Text, HasSubstr(Scheme));
    } else {
      const std::string Spec = std::string(Scheme) + "://localhost:1";
      EXPECT_EQ(mlbridgeCheckModelSpec(Spec.c_str()),
                MLBridgeStatusUnsupported);
      EXPECT_THAT(lastMessage(),
                  HasSubstr(std::string("MLBridge-") + Scheme + ".so"));
    }
    Destroy(Model);
  }
}

} // namespace
