//===- CFactoryTest.cpp - Schemes and runners written in C ----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests the schemes of a factory, and runners that consist of callbacks.
///
//===----------------------------------------------------------------------===//

#include "capi/CAPITest.h"
#include "support/AllocationCounter.h"

#include <map>

using namespace MLBridge::test;
using testing::Contains;
using testing::HasSubstr;
using testing::Key;

namespace {

class CFactoryTest : public testing::Test {
protected:
  CFactoryTest() {
    MLBridgeRunnerFactoryRef Made = nullptr;
    EXPECT_EQ(mlbridgeCreateRunnerFactory(&Made), MLBridgeStatusSuccess);
    Schemes.reset(Made);
    Callbacks.Size = sizeof(Callbacks);
    Callbacks.Evaluate = [](void *, MLBridgeAdviceRef Request, int64_t Left,
                            MLBridgeFeatureSetRef Reply) {
      return echo(Request, Left, Reply);
    };
  }

  MLBridgeStatus add(const char *Name, void *User = nullptr) {
    return mlbridgeAddScheme(Schemes.get(), Name, "a line", &Callbacks, User);
  }
  MLBridgeStatus create(const char *Spec, RunnerHandle &Out) {
    MLBridgeModelRunnerRef Made = nullptr;
    MLBridgeStatus Status =
        mlbridgeCreateModelRunnerWithFactory(Schemes.get(), Spec, &Made);
    Out.reset(Made);
    return Status;
  }
  std::map<std::string, std::string> list() const {
    std::map<std::string, std::string> Found;
    for (std::size_t I = 0; I != mlbridgeGetNumSchemes(Schemes.get()); ++I) {
      const char *Name, *Help;
      EXPECT_EQ(mlbridgeGetSchemeAt(Schemes.get(), I, &Name, &Help),
                MLBridgeStatusSuccess);
      Found[Name] = Help;
    }
    return Found;
  }

  FactoryHandle Schemes;
  MLBridgeRunnerCallbacks Callbacks = {};
};

TEST_F(CFactoryTest, SchemesAreListed) {
  auto Found = list();
  for (const char *Name : {"none", "pipe", "shm", "record", "fallback"})
    EXPECT_THAT(Found, Contains(Key(Name)));
  EXPECT_THAT(Found["pipe"], HasSubstr("pipe:NAME"));
  ASSERT_EQ(add("mine"), MLBridgeStatusSuccess) << lastMessage();
  EXPECT_EQ(list()["mine"], "a line");
  // Either pointer may be null. An index after the last scheme is an error.
  EXPECT_EQ(mlbridgeGetSchemeAt(Schemes.get(), 0, nullptr, nullptr),
            MLBridgeStatusSuccess);
  EXPECT_EQ(mlbridgeGetSchemeAt(Schemes.get(), 1000, nullptr, nullptr),
            MLBridgeStatusInvalidArgument);
}

TEST_F(CFactoryTest, ARunnerIsCreatedEvaluatedAndDisposed) {
  struct Log {
    std::string Path;
    int Open = 0;
    std::int64_t Left = 0;
  } Seen;
  Callbacks.Create = [](void *User, const char *Path, void **Runner) {
    auto *Seen = static_cast<Log *>(User);
    if (std::string(Path) == "missing")
      return mlbridgeFail(MLBridgeStatusSystem, "no such file");
    Seen->Path = Path;
    ++Seen->Open;
    *Runner = User;
    return MLBridgeStatusSuccess;
  };
  Callbacks.Evaluate = [](void *Runner, MLBridgeAdviceRef Request,
                          int64_t Nanoseconds, MLBridgeFeatureSetRef Reply) {
    static_cast<Log *>(Runner)->Left = Nanoseconds;
    std::int32_t Size;
    MLBridgeStatus Status = mlbridgeGetInt32(Request, "size", &Size);
    return Status ? Status : mlbridgeSetBool(Reply, "inline", Size < 10);
  };
  Callbacks.Dispose = [](void *Runner) { --static_cast<Log *>(Runner)->Open; };
  ASSERT_EQ(add("mine", &Seen), MLBridgeStatusSuccess) << lastMessage();

  RunnerHandle Model;
  ASSERT_EQ(create("fallback|mine:a%7Cb?timeout=3s", Model),
            MLBridgeStatusSuccess)
      << lastMessage();
  EXPECT_EQ(Seen.Path, "a|b");
  EXPECT_EQ(Seen.Open, 1);
  // The runner outlives the factory.
  Schemes.reset();
  bool Inline = false;
  mlbridgeSetInt32(mlbridgeGetFeatures(Model.get()), "size", 3);
  ASSERT_EQ(mlbridgeEvaluateBool(Model.get(), &Inline), MLBridgeStatusSuccess)
      << lastMessage();
  EXPECT_TRUE(Inline);
  EXPECT_GT(Seen.Left, 0);
  EXPECT_LE(Seen.Left, 30'000'000'000);
  mlbridgeSetTimeout(Model.get(), MLBRIDGE_FOREVER);
  mlbridgeSetInt32(mlbridgeGetFeatures(Model.get()), "size", 30);
  ASSERT_EQ(mlbridgeEvaluateBool(Model.get(), &Inline), MLBridgeStatusSuccess);
  EXPECT_FALSE(Inline);
  EXPECT_EQ(Seen.Left, MLBRIDGE_FOREVER);
  Model.reset();
  EXPECT_EQ(Seen.Open, 0);
}

TEST_F(CFactoryTest, FailuresOfCallbacksKeepTheirMessages) {
  Callbacks.Create = [](void *, const char *Path, void **) {
    return mlbridgeFail(MLBridgeStatusSystem, Path);
  };
  ASSERT_EQ(add("mine"), MLBridgeStatusSuccess);
  RunnerHandle Model;
  EXPECT_EQ(create("mine:missing.bin", Model), MLBridgeStatusSystem);
  EXPECT_EQ(lastMessage(), "mine:missing.bin: missing.bin");
  EXPECT_FALSE(Model);
}

TEST_F(CFactoryTest, WhatEvaluateReturns) {
  ReplyFunction Reply;
  RunnerHandle Model = makeRunner(Reply);
  auto Evaluate = [&](ReplyFunction By) {
    Reply = std::move(By);
    MLBridgeAdviceRef Advice;
    return mlbridgeEvaluate(Model.get(), &Advice);
  };
  // The error must not contain a message from before the call.
  mlbridgeFail(MLBridgeStatusModel, "stale");
  EXPECT_EQ(Evaluate([](auto...) { return MLBridgeStatusModel; }),
            MLBridgeStatusModel);
  EXPECT_THAT(lastMessage(), HasSubstr("answer: Evaluate failed"));
  EXPECT_THAT(lastMessage(), HasSubstr("mlbridgeFail"));
  EXPECT_EQ(Evaluate([](auto...) {
              return mlbridgeFail(MLBridgeStatusDeferred, "too hot");
            }),
            MLBridgeStatusDeferred);
  EXPECT_EQ(lastMessage(), "answer: too hot");
  EXPECT_EQ(Evaluate([](auto...) { return MLBridgeStatus(77); }),
            MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("returned 77"));
  // If a call inside Evaluate fails, its error becomes the error of Evaluate.
  EXPECT_EQ(
      Evaluate([](MLBridgeAdviceRef Request, int64_t, MLBridgeFeatureSetRef) {
        bool Flag;
        return mlbridgeGetBool(Request, "flag", &Flag);
      }),
      MLBridgeStatusSchemaMismatch);
  EXPECT_THAT(lastMessage(), HasSubstr("flag"));
  // If setting the reply fails, the request fails.
  EXPECT_EQ(Evaluate([](MLBridgeAdviceRef, int64_t, MLBridgeFeatureSetRef Out) {
              mlbridgeSetString(Out, "x", nullptr);
              return MLBridgeStatusSuccess;
            }),
            MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("answer: feature 'x': 'Text' is null"));
  // The next request succeeds.
  EXPECT_EQ(Evaluate([](MLBridgeAdviceRef, int64_t, MLBridgeFeatureSetRef Out) {
              return mlbridgeSetInt32(Out, "x", 1);
            }),
            MLBridgeStatusSuccess);
}

TEST_F(CFactoryTest, ASuccessLeavesTheLastMessage) {
  ReplyFunction Reply = [](MLBridgeAdviceRef, int64_t,
                           MLBridgeFeatureSetRef Out) {
    return mlbridgeSetInt32(Out, "x", 1);
  };
  RunnerHandle Model = makeRunner(Reply);
  std::int32_t Found;
  mlbridgeFail(MLBridgeStatusModel, "the last that failed");
  ASSERT_EQ(mlbridgeEvaluateInt32(Model.get(), &Found), MLBridgeStatusSuccess);
  EXPECT_EQ(lastMessage(), "the last that failed");
  // A call that fails inside the callback does change the last message.
  Reply = [](MLBridgeAdviceRef Request, int64_t, MLBridgeFeatureSetRef Out) {
    int32_t Size = 7;
    mlbridgeGetInt32(Request, "size", &Size);
    return mlbridgeSetInt32(Out, "x", Size);
  };
  ASSERT_EQ(mlbridgeEvaluateInt32(Model.get(), &Found), MLBridgeStatusSuccess);
  EXPECT_EQ(Found, 7);
  EXPECT_THAT(lastMessage(), HasSubstr("size"));
}

TEST_F(CFactoryTest, ACreatedRunnerIsDisposedWhenMemoryRunsOut) {
  if (!AllocationFailure::isPossible())
    GTEST_SKIP() << "allocations cannot fail under sanitizers";
  int Open = 0;
  Callbacks.Create = [](void *User, const char *, void **Runner) {
    ++*static_cast<int *>(User);
    *Runner = User;
    return MLBridgeStatusSuccess;
  };
  Callbacks.Dispose = [](void *Runner) { --*static_cast<int *>(Runner); };
  ASSERT_EQ(add("mine", &Open), MLBridgeStatusSuccess);
  for (std::size_t After = 0;; ++After) {
    RunnerHandle Model;
    MLBridgeStatus Status;
    bool HasHappened;
    {
      AllocationFailure Failure(After);
      Status = create("mine:path?timeout=3s", Model);
      HasHappened = Failure.hasHappened();
    }
    ASSERT_EQ(Open, Model ? 1 : 0) << After;
    if (!HasHappened) {
      EXPECT_EQ(Status, MLBridgeStatusSuccess);
      EXPECT_GT(After, 5U);
      break;
    }
    ASSERT_EQ(Status, MLBridgeStatusSystem) << lastMessage();
    ASSERT_EQ(lastMessage(), "memory has run out");
  }
  EXPECT_EQ(Open, 0);
}

TEST_F(CFactoryTest, ASchemeMustBeComplete) {
  EXPECT_EQ(add(""), MLBridgeStatusInvalidArgument);
  EXPECT_EQ(add("a:b"), MLBridgeStatusInvalidArgument);
  EXPECT_EQ(add("a|b"), MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("'a|b' is not a valid scheme name"));
  Callbacks.Size -= 1;
  EXPECT_EQ(add("mine"), MLBridgeStatusInvalidArgument);
  Callbacks.Size = sizeof(Callbacks) + 8;
  EXPECT_EQ(add("mine"), MLBridgeStatusUnsupported);
  EXPECT_THAT(lastMessage(), HasSubstr("Callbacks->Size"));
  Callbacks.Size = sizeof(Callbacks);
  Callbacks.Evaluate = nullptr;
  EXPECT_EQ(add("mine"), MLBridgeStatusInvalidArgument);
  EXPECT_EQ(list().count("mine"), 0U);
}

TEST_F(CFactoryTest, SpecsOfOwnSchemesAreChecked) {
  ASSERT_EQ(add("mine"), MLBridgeStatusSuccess);
  auto Check = [&](const char *Spec) {
    return mlbridgeCheckModelSpecWithFactory(Schemes.get(), Spec);
  };
  EXPECT_EQ(Check("mine?timeout=1s"), MLBridgeStatusSuccess);
  EXPECT_EQ(Check("mine:path"), MLBridgeStatusInvalidArgument);
  EXPECT_THAT(lastMessage(), HasSubstr("'mine' takes no path"));
  EXPECT_EQ(Check("mine?speed=1"), MLBridgeStatusInvalidArgument);
  // Other factories do not know the scheme.
  EXPECT_EQ(mlbridgeCheckModelSpec("mine"), MLBridgeStatusInvalidArgument);
}

TEST_F(CFactoryTest, ConnectTimeout) {
  EXPECT_EQ(mlbridgeSetConnectTimeout(Schemes.get(), -5),
            MLBridgeStatusInvalidArgument);
  ASSERT_EQ(mlbridgeSetConnectTimeout(Schemes.get(), 20'000'000),
            MLBridgeStatusSuccess);
  RunnerHandle Model;
  ASSERT_EQ(create("pipe:/nowhere/at/all", Model), MLBridgeStatusSuccess);
  bool Reply;
  EXPECT_EQ(mlbridgeEvaluateBool(Model.get(), &Reply), MLBridgeStatusTimeout);
  EXPECT_THAT(lastMessage(), HasSubstr("20 ms"));
}

} // namespace
