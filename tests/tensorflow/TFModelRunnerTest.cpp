//===- TFModelRunnerTest.cpp - SavedModels in TensorFlow ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests TFModelRunner with the models of make_models.py.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/TFModelRunner.h"
#include "MLCompilerBridge-C/MLCompilerBridge.h"
#include "MLCompilerBridge-C/PaperAPI.h"
#include "TF/SignatureReader.h"
#include "support/Damage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace MLBridge;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

namespace fs = std::filesystem;

namespace {

fs::path model(const char *Name) {
  return fs::path(MLBRIDGE_TEST_TF_MODELS) / Name;
}

TFOptions options() {
  TFOptions Options;
  Options.Runtime = MLBRIDGE_TEST_TENSORFLOW;
  return Options;
}

std::vector<float> readFloats(const fs::path &File) {
  std::ifstream Stream(File, std::ios::binary);
  std::vector<float> Values(fs::file_size(File) / sizeof(float));
  Stream.read(reinterpret_cast<char *>(Values.data()),
              static_cast<std::streamsize>(Values.size() * sizeof(float)));
  return Values;
}

template <typename T> std::string failure(Expected<T> Result) {
  if (Result)
    return "success";
  return Result.takeError().str();
}

/// Returns the error of a request for a number.
std::string failureOf(MLModelRunner &Runner) {
  return failure(Runner.tryEvaluate<float>());
}

class TFModelRunnerTest : public testing::Test {
protected:
  TFModelRunnerTest()
      : Folder(fs::temp_directory_path() /
               ("mlb-tf-" + std::to_string(::getpid()))) {
    fs::remove_all(Folder);
    fs::create_directory(Folder);
  }
  ~TFModelRunnerTest() override { fs::remove_all(Folder); }

  fs::path Folder;
  const std::vector<float> X = {1, 1, 1, 0};
};

} // namespace

TEST_F(TFModelRunnerTest, AnswersFromItsVariables) {
  TFModelRunner Runner(model("linear"), {}, options());
  for (float Scale : {1.0f, -2.0f, 0.5f}) {
    std::vector<float> Scaled = {Scale, 0, 0, 0};
    Runner.populateFeatures(std::pair{"x", Scaled});
    EXPECT_EQ(Runner.evaluate<float>(), Scale);
  }
}

TEST_F(TFModelRunnerTest, TakesBatchesOfAnySize) {
  TFModelRunner Runner(model("linear"), {}, options());
  for (int Rows : {1, 3, 2}) {
    std::vector<float> Requests(std::size_t(Rows) * 4, 1.0f);
    Runner.populateFeatures(
        std::pair{"x", TensorRef(Requests, Shape{Rows, 4})});
    EXPECT_EQ(Runner.evaluate<std::vector<float>>(),
              std::vector<float>(std::size_t(Rows), -2.0f));
  }
}

TEST_F(TFModelRunnerTest, HasInputsAndOutputsByName) {
  TFModelRunner Runner(model("two"), {}, options());
  Expected<const Model *> Loaded = Runner.model();
  ASSERT_TRUE(Loaded) << Loaded.takeError().str();
  ASSERT_EQ((*Loaded)->inputs().size(), 2u);
  EXPECT_EQ((*Loaded)->inputs()[0].Name, "a");
  EXPECT_EQ((*Loaded)->inputs()[0].typeStr(), "int64_t[?,1]");
  EXPECT_EQ((*Loaded)->inputs()[1].Name, "b");
  EXPECT_EQ((*Loaded)->inputs()[1].typeStr(), "float[?,2]");

  std::vector<float> B = {3, 5};
  Runner.populateFeatures(std::pair{"b", B}, std::pair{"unused", 1},
                          std::pair{"a", std::int64_t(10)});
  Advice Found = Runner.evaluate<Advice>();
  ASSERT_EQ(Found.size(), 2u);
  auto Logits = Found.get<std::vector<float>>("logits");
  ASSERT_TRUE(Logits) << Logits.takeError().str();
  EXPECT_THAT(*Logits, ElementsAre(13, 5, 15));
  auto Twice = Found.get<int>("twice");
  ASSERT_TRUE(Twice) << Twice.takeError().str();
  EXPECT_EQ(*Twice, 20);
}

TEST_F(TFModelRunnerTest, Decides) {
  DecisionOptions Decisions;
  Decisions.Decide = DecisionOptions::Rule::ArgMax;
  Decisions.Output = "logits";
  TFModelRunner Runner(model("two"), Decisions, options());
  std::vector<float> B = {3, 5};
  Runner.populateFeatures(std::pair{"a", std::int64_t(10)}, std::pair{"b", B});
  EXPECT_EQ(Runner.evaluate<int>(), 2);
  Runner.populateFeatures(std::pair{"a", std::int64_t(100)}, std::pair{"b", B});
  EXPECT_EQ(Runner.evaluate<int>(), 0);
}

TEST_F(TFModelRunnerTest, HasOtherSignatures) {
  TFOptions Other = options();
  Other.Signature = "other";
  TFModelRunner Runner(model("two"), {}, Other);
  Runner.populateFeatures(std::pair{"a", std::int64_t(10)});
  EXPECT_EQ(Runner.evaluate<int>(), -10);
}

TEST_F(TFModelRunnerTest, AnswersAsTensorFlowDoesInPython) {
  const std::vector<float> Requests = readFloats(model("network/requests"));
  const std::vector<float> Replies = readFloats(model("network/answers"));
  const std::size_t Rows = Replies.size() / 15;
  ASSERT_EQ(Requests.size(), Rows * 300);
  TFModelRunner Runner(model("network"), {}, options());
  for (std::size_t Row = 0; Row < Rows; ++Row) {
    Span<const float> Request(Requests.data() + Row * 300, 300);
    Runner.populateFeatures(std::pair{"x", Request});
    auto Logits = Runner.evaluate<std::vector<float>>();
    ASSERT_EQ(Logits.size(), 15u);
    for (std::size_t I = 0; I < 15; ++I)
      EXPECT_NEAR(Logits[I], Replies[Row * 15 + I], 1e-5);
  }
}

TEST_F(TFModelRunnerTest, IsSharedByThreads) {
  Expected<std::shared_ptr<const Model>> Loaded =
      loadTFModel(model("linear"), options());
  ASSERT_TRUE(Loaded) << Loaded.takeError().str();
  std::vector<std::thread> Threads;
  std::vector<int> Wrong(4, -1);
  for (std::size_t T = 0; T < Wrong.size(); ++T)
    Threads.emplace_back([&, T] {
      InProcessModelRunner Runner("linear", {{"", [&] { return *Loaded; }}});
      Wrong[T] = 0;
      for (int I = 0; I < 2000; ++I) {
        std::vector<float> Request = {float(T), float(I), 0, 0};
        Runner.populateFeatures(std::pair{"x", Request});
        Expected<float> Found = Runner.tryEvaluate<float>();
        Wrong[T] += !Found || *Found != float(T) - 2 * float(I);
      }
    });
  for (std::thread &T : Threads)
    T.join();
  EXPECT_THAT(Wrong, ElementsAre(0, 0, 0, 0));
}

TEST_F(TFModelRunnerTest, IsLoadedAgainWhenItsFolderHasChanged) {
  fs::copy(model("linear"), Folder, fs::copy_options::recursive);
  RunnerFactory Factory;
  addTF(Factory, options());
  auto Ask = [&] {
    auto Runner = Factory.create("tf:" + Folder.string());
    if (!Runner)
      return NAN;
    (*Runner)->populateFeatures(std::pair{"x", X});
    Expected<float> Found = (*Runner)->tryEvaluate<float>();
    return Found ? *Found : NAN;
  };
  EXPECT_EQ(Ask(), 2.0f);
  EXPECT_EQ(Ask(), 2.0f);
  fs::copy(model("other"), Folder,
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  EXPECT_EQ(Ask(), 20.0f);
}

TEST_F(TFModelRunnerTest, IsASpec) {
  RunnerFactory Factory;
  addTF(Factory, options());
  auto Runner = Factory.create("tf:" + model("two").string() +
                               "?signature=other&decide=outputs");
  ASSERT_TRUE(Runner) << Runner.takeError().str();
  (*Runner)->populateFeatures(std::pair{"a", std::int64_t(4)});
  EXPECT_EQ((*Runner)->evaluate<int>(), -4);
  EXPECT_THAT(failure(Factory.create("tf:x?sgnature=other")),
              HasSubstr("signature"));
}

/// TensorFlow contains a copy of LLVM. The options of this copy must not
/// collide with the options of the compiler's LLVM.
TEST_F(TFModelRunnerTest, LivesBesideACompilersLLVM) {
  if (!*MLBRIDGE_TEST_LLVM)
    GTEST_SKIP() << "libLLVM.so is not installed";
  ASSERT_TRUE(::dlopen(MLBRIDGE_TEST_LLVM, RTLD_NOW | RTLD_GLOBAL))
      << ::dlerror();
  TFModelRunner Runner(model("linear"), {}, options());
  Runner.populateFeatures(std::pair{"x", X});
  EXPECT_EQ(failureOf(Runner), "success");
}

/// A compiler that was built without TensorFlow loads TFModelRunner from a
/// module.
TEST_F(TFModelRunnerTest, IsAModule) {
  ::setenv("MLBRIDGE_MODULES", MLBRIDGE_TEST_MODULES, 1);
  RunnerFactory Factory;
  auto Runner = Factory.create("tf:" + model("linear").string() +
                               "?runtime=" + MLBRIDGE_TEST_TENSORFLOW);
  ASSERT_TRUE(Runner) << Runner.takeError().str();
  (*Runner)->populateFeatures(std::pair{"x", X});
  EXPECT_EQ((*Runner)->evaluate<float>(), 2.0f);
}

/// A C program makes a request through a spec and through the paper's function
/// name.
TEST_F(TFModelRunnerTest, IsAskedInC) {
  ::setenv("MLBRIDGE_MODULES", MLBRIDGE_TEST_MODULES, 1);
  ::setenv("MLBRIDGE_TENSORFLOW", MLBRIDGE_TEST_TENSORFLOW, 1);
  const std::string Spec = "tf:" + model("linear").string();
  MLBridgeModelRunnerRef BySpec = nullptr;
  ASSERT_EQ(mlbridgeCreateModelRunner(Spec.c_str(), &BySpec),
            MLBridgeStatusSuccess)
      << mlbridgeGetLastErrorMessage();
  MLBridgeModelRunnerRef ByName = createTFModelRunner(model("linear").c_str());
  ASSERT_NE(ByName, nullptr) << mlbridgeGetLastErrorMessage();
  for (MLBridgeModelRunnerRef Runner : {BySpec, ByName}) {
    float Found = 0;
    ASSERT_EQ(populateFloatFeatures(Runner, "x", X.data(), X.size()),
              MLBridgeStatusSuccess);
    EXPECT_EQ(evaluateFloatFeatures(Runner, &Found), MLBridgeStatusSuccess)
        << mlbridgeGetLastErrorMessage();
    EXPECT_EQ(Found, 2.0F);
    // The model has another extent.
    ASSERT_EQ(populateFloatFeatures(Runner, "x", X.data(), 2),
              MLBridgeStatusSuccess);
    EXPECT_EQ(evaluateFloatFeatures(Runner, &Found),
              MLBridgeStatusSchemaMismatch);
  }
  mlbridgeDisposeModelRunner(BySpec);
  destroyTFModelRunner(ByName);
}

TEST_F(TFModelRunnerTest, RunnersOfTheModuleShareAModel) {
  ::setenv("MLBRIDGE_MODULES", MLBRIDGE_TEST_MODULES, 1);
  fs::copy(model("linear"), Folder, fs::copy_options::recursive);
  const RunnerFactory Factory;
  auto Ask = [&](const RunnerFactory &By) -> Expected<float> {
    auto Runner = By.create("tf:" + Folder.string() +
                            "?runtime=" + MLBRIDGE_TEST_TENSORFLOW);
    if (!Runner)
      return Runner.takeError();
    (*Runner)->populateFeatures(std::pair{"x", X});
    return (*Runner)->tryEvaluate<float>();
  };
  Expected<float> First = Ask(Factory);
  ASSERT_TRUE(First) << First.message();
  // If the folder were read again, this would now fail.
  test::damageUnseen(Folder / "saved_model.pb");
  Expected<float> Second = Ask(RunnerFactory(Factory));
  ASSERT_TRUE(Second) << Second.message();
  EXPECT_EQ(*Second, 2.0f);
  EXPECT_FALSE(Ask(RunnerFactory()));
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

TEST_F(TFModelRunnerTest, NoSuchFolder) {
  TFModelRunner Runner(Folder / "none", {}, options());
  EXPECT_THAT(failureOf(Runner), HasSubstr("System: model folder"));
}

TEST_F(TFModelRunnerTest, NoSavedModelInTheFolder) {
  TFModelRunner Runner(Folder, {}, options());
  EXPECT_THAT(failureOf(Runner),
              HasSubstr("expected a SavedModel, found no saved_model.pb"));
}

TEST_F(TFModelRunnerTest, ABrokenFile) {
  fs::copy(model("linear"), Folder, fs::copy_options::recursive);
  fs::resize_file(Folder / "saved_model.pb", 100);
  TFModelRunner Runner(Folder, {}, options());
  EXPECT_THAT(failureOf(Runner), HasSubstr("Model: tf:" + Folder.string()));
}

TEST_F(TFModelRunnerTest, VariablesAreMissing) {
  fs::copy(model("linear"), Folder, fs::copy_options::recursive);
  for (const auto &Entry : fs::directory_iterator(Folder / "variables"))
    fs::resize_file(Entry.path(), 0);
  TFModelRunner Runner(Folder, {}, options());
  EXPECT_THAT(failureOf(Runner), HasSubstr("Model: tf:" + Folder.string()));
}

TEST_F(TFModelRunnerTest, NoSuchSignature) {
  TFOptions Other = options();
  Other.Signature = "train";
  TFModelRunner Runner(model("two"), {}, Other);
  std::string Failure = failureOf(Runner);
  EXPECT_THAT(Failure, HasSubstr("InvalidArgument"));
  EXPECT_THAT(Failure, HasSubstr("expected the signature 'train', found"));
  EXPECT_THAT(Failure, HasSubstr("serving_default"));
  EXPECT_THAT(Failure, HasSubstr("other"));
}

TEST_F(TFModelRunnerTest, InputsThatNoFeatureCanBe) {
  TFModelRunner Runner(model("text"), {}, options());
  EXPECT_THAT(failureOf(Runner),
              HasSubstr("'name': expected a dense tensor of numbers or bools, "
                        "found strings"));
}

TEST_F(TFModelRunnerTest, FeaturesThatDoNotFit) {
  TFModelRunner Runner(model("linear"), {}, options());
  EXPECT_THAT(failureOf(Runner), HasSubstr("SchemaMismatch"));
  std::vector<double> Doubles(4);
  Runner.populateFeatures(std::pair{"x", Doubles});
  EXPECT_THAT(failureOf(Runner), HasSubstr("SchemaMismatch"));
  std::vector<float> Five(5);
  Runner.populateFeatures(std::pair{"x", Five});
  EXPECT_THAT(failureOf(Runner), HasSubstr("SchemaMismatch"));
  Runner.populateFeatures(std::pair{"x", X});
  EXPECT_EQ(failureOf(Runner), "success");
}

TEST_F(TFModelRunnerTest, NoTensorFlow) {
  TFOptions Other;
  Other.Runtime = Folder / "libtensorflow_cc.so.2";
  TFModelRunner Runner(model("linear"), {}, Other);
  std::string Failure = failureOf(Runner);
  EXPECT_THAT(Failure, HasSubstr("Unsupported"));
  EXPECT_THAT(Failure, HasSubstr("MLBRIDGE_TENSORFLOW=PATH"));

  Other.Runtime = "libm.so.6";
  TFModelRunner OfMath(model("linear"), {}, Other);
  EXPECT_THAT(failureOf(OfMath), HasSubstr("libm.so.6 lacks the function TF_"));
}

namespace {
class TFDeadlineTest : public TFModelRunnerTest {
protected:
  static std::unique_ptr<TFModelRunner> makeRunner(Duration Timeout) {
    auto Runner = std::make_unique<TFModelRunner>(model("loop").string(),
                                                  DecisionOptions(), options());
    Runner->setTimeout(Timeout);
    return Runner;
  }
  static Expected<float> ask(MLModelRunner &Runner, float X, std::int64_t N) {
    Runner.populateFeatures(std::pair{"x", X}, std::pair{"n", N});
    return Runner.tryEvaluate<float>();
  }
  /// The number of iterations of a loop that no deadline allows to end.
  static constexpr std::int64_t Centuries = std::int64_t(1) << 62;
};
} // namespace

TEST_F(TFDeadlineTest, ALoopWithoutAnEndIsInterrupted) {
  auto Runner = makeRunner(200ms);
  for (int Round = 0; Round < 3; ++Round) {
    Runner->setTimeout(30s); // The timeout includes the loading.
    EXPECT_EQ(*ask(*Runner, 1, 3), 4);
    Runner->setTimeout(200ms);
    const auto Start = std::chrono::steady_clock::now();
    Error E = ask(*Runner, 1, Centuries).takeError();
    EXPECT_EQ(E.str(), "Timeout: tf:" + model("loop").string() +
                           " did not answer before the deadline");
    EXPECT_LT(std::chrono::steady_clock::now() - Start, 5s);
  }
}

TEST_F(TFDeadlineTest, OthersThatShareTheModelGetTheirReplies) {
  RunnerFactory Factory;
  addTF(Factory, options());
  const std::string Spec = "tf:" + model("loop").string();
  auto Late = Factory.create(Spec);
  ASSERT_TRUE(Late) << Late.message();
  ASSERT_EQ(*ask(**Late, 1, 3), 4);
  std::atomic<bool> Stop = false;
  std::atomic<int> Asked = 0, Wrong = 0;
  std::vector<std::thread> Others;
  for (int I = 0; I < 4; ++I)
    Others.emplace_back([&] {
      auto Runner = Factory.create(Spec);
      for (; !Stop; ++Asked)
        if (Expected<float> Reply = ask(**Runner, 1, 200);
            !Reply || *Reply != 201) {
          ++Wrong;
          std::fprintf(stderr, "%s\n", Reply.takeError().str().c_str());
        }
    });
  for (int Round = 0; Round < 5; ++Round) {
    (*Late)->setTimeout(30s);
    EXPECT_EQ(*ask(**Late, 1, 3), 4);
    (*Late)->setTimeout(50ms);
    EXPECT_EQ(ask(**Late, 1, Centuries).code(), ErrorCode::Timeout);
  }
  Stop = true;
  for (std::thread &Other : Others)
    Other.join();
  EXPECT_EQ(Wrong, 0);
  EXPECT_GT(Asked, 0);
}

TEST_F(TFDeadlineTest, AFolderWithAnotherModelIsNotTakenForTheSame) {
  const fs::path Copy = Folder / "m";
  fs::copy(model("loop"), Copy, fs::copy_options::recursive);
  TFModelRunner Runner(Copy.string(), {}, options());
  EXPECT_EQ(*ask(Runner, 1, 3), 4);
  Runner.setTimeout(50ms);
  EXPECT_EQ(ask(Runner, 1, Centuries).code(), ErrorCode::Timeout);
  fs::remove_all(Copy);
  fs::copy(model("linear"), Copy, fs::copy_options::recursive);
  Runner.setTimeout(30s);
  Error E = ask(Runner, 1, 3).takeError();
  EXPECT_EQ(E.code(), ErrorCode::SchemaMismatch);
  EXPECT_THAT(E.message(), HasSubstr("other inputs or outputs"));
}

TEST_F(TFDeadlineTest, ParentAndChildGoOnAsking) {
  auto Runner = makeRunner(30s);
  EXPECT_EQ(*ask(*Runner, 1, 3), 4);
  const pid_t Child = ::fork();
  if (Child == 0) {
    ::alarm(60);
    for (int I = 0; I < 10; ++I)
      if (Expected<float> Reply = ask(*Runner, 1, I); !Reply || *Reply != 1 + I)
        ::_exit(1);
    Runner->setTimeout(200ms);
    if (ask(*Runner, 1, Centuries).code() != ErrorCode::Timeout)
      ::_exit(2);
    Runner.reset();
    std::exit(7);
  }
  for (int I = 0; I < 10; ++I)
    EXPECT_EQ(*ask(*Runner, 1, I), 1 + I);
  int Status = 0;
  EXPECT_EQ(::waitpid(Child, &Status, 0), Child);
  EXPECT_TRUE(WIFEXITED(Status));
  EXPECT_EQ(WEXITSTATUS(Status), 7);
}

TEST_F(TFModelRunnerTest, AFolderThatIsNoModelIsRefusedQuickly) {
  RunnerFactory Factory;
  addTF(Factory, options());
  auto Runner = Factory.create("tf:/usr");
  ASSERT_TRUE(Runner) << Runner.message();
  const auto Start = std::chrono::steady_clock::now();
  EXPECT_THAT(failureOf(**Runner),
              HasSubstr("model folder '/usr': expected a model of at most "));
  EXPECT_LT(std::chrono::steady_clock::now() - Start, 2s);
}

/// Returns the MetaGraphDef in a saved_model.pb, which is field 2.
static std::string metaGraph() {
  std::ifstream Stream(model("two") / "saved_model.pb", std::ios::binary);
  std::string File((std::istreambuf_iterator<char>(Stream)), {});
  std::size_t At = File.find('\x12') + 1;
  while (static_cast<unsigned char>(File.at(At)) >= 0x80)
    ++At;
  return File.substr(At + 1);
}

/// Reading must end for any bytes. Sanitizers find reads outside the bytes.
TEST(SignatureReader, BrokenBytes) {
  const std::string Whole = metaGraph();
  Expected<tf::Signature> Found = tf::readSignature(Whole, "other", "two");
  ASSERT_TRUE(Found) << Found.takeError().str();
  ASSERT_EQ(Found->Inputs.size(), 1u);
  EXPECT_EQ(Found->Inputs[0].Spec.Name, "a");
  EXPECT_EQ(Found->Inputs[0].Index, 0);

  const std::size_t Step = Whole.size() / 997 + 1;
  int Failed = 0;
  for (std::size_t Size = 0; Size < Whole.size(); Size += Step)
    Failed += !tf::readSignature(Whole.substr(0, Size), "other", "two");
  EXPECT_GT(Failed, 0);
  // The signatures are at the end of the file, so change bytes there.
  std::uint32_t Random = 1;
  for (int I = 0; I < 20000; ++I) {
    std::string Broken = Whole.substr(Whole.size() - 2000);
    for (int J = 0; J < 3; ++J) {
      Random = Random * 1664525 + 1013904223;
      Broken[(Random >> 8) % Broken.size()] = static_cast<char>(Random >> 24);
    }
    if (!tf::readSignature(Broken, "other", "two"))
      ++Failed;
  }
  EXPECT_GT(Failed, 1000);
}
