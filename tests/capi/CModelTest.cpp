//===- CModelTest.cpp - In-process models in the C API --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests which runners share a model, and how a path in a spec is resolved.
///
//===----------------------------------------------------------------------===//

#include "capi/CAPITest.h"
#include "support/ONNXTest.h"

#include <sys/inotify.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;
using testing::HasSubstr;

namespace {

class CModelTest : public ONNXTest {
protected:
  std::string options() const {
    return Options.Runtime.empty() ? "" : "runtime=" + Options.Runtime;
  }
  static MLBridgeStatus ask(const RunnerHandle &Model, float *Reply) {
    mlbridgeSetFloat(mlbridgeGetFeatures(Model.get()), "x", 1);
    return mlbridgeEvaluateFloat(Model.get(), Reply);
  }
};

/// Watches whether a file is opened.
class OpenWatch {
public:
  explicit OpenWatch(const std::string &File) {
    EXPECT_GE(::inotify_add_watch(FD, File.c_str(), IN_OPEN), 0);
  }
  ~OpenWatch() { ::close(FD); }
  /// True if the file was opened since the last call.
  bool again() const {
    alignas(inotify_event) char Bytes[1 << 12];
    bool Any = false;
    while (::read(FD, Bytes, sizeof(Bytes)) > 0)
      Any = true;
    return Any;
  }

private:
  int FD = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
};

TEST_F(CModelTest, ThreadsShareTheModelsOfAFactory) {
  const std::string File = write(add(1));
  const std::string Spec = "onnx:" + File + "?" + options();
  MLBridgeRunnerFactoryRef Made = nullptr;
  ASSERT_EQ(mlbridgeCreateRunnerFactory(&Made), MLBridgeStatusSuccess);
  FactoryHandle Factory(Made);
  OpenWatch Model(File);
  std::atomic<int> Right = 0;
  std::vector<std::thread> Threads;
  for (int T = 0; T < 8; ++T)
    Threads.emplace_back([&] {
      MLBridgeModelRunnerRef Runner = nullptr;
      mlbridgeCreateModelRunnerWithFactory(Made, Spec.c_str(), &Runner);
      RunnerHandle Owner(Runner);
      float Reply = 0;
      Right += ask(Owner, &Reply) == MLBridgeStatusSuccess && Reply == 2;
    });
  for (std::thread &Thread : Threads)
    Thread.join();
  EXPECT_EQ(Right, 8);
  EXPECT_TRUE(Model.again());
  // The factory keeps the model, also for a ninth runner. Another factory loads
  // the model again.
  MLBridgeModelRunnerRef Ninth = nullptr;
  ASSERT_EQ(mlbridgeCreateModelRunnerWithFactory(Made, Spec.c_str(), &Ninth),
            MLBridgeStatusSuccess);
  float Reply = 0;
  EXPECT_EQ(ask(RunnerHandle(Ninth), &Reply), MLBridgeStatusSuccess);
  EXPECT_FALSE(Model.again());
  EXPECT_EQ(ask(makeRunner(Spec), &Reply), MLBridgeStatusSuccess);
  EXPECT_TRUE(Model.again());
}

TEST_F(CModelTest, APathMayNameAgents) {
  const std::filesystem::path Before = std::filesystem::current_path();
  std::filesystem::current_path(Directory.path());
  write(add(1), "policy.onnx");
  write(add(2), "a=policy.onnx");
  auto Create = [&](const char *Path) {
    MLBridgeModelRunnerRef Made = nullptr;
    EXPECT_EQ(
        mlbridgeCreateModelRunnerAt("onnx", Path, options().c_str(), &Made),
        MLBridgeStatusSuccess)
        << lastMessage();
    return RunnerHandle(Made);
  };
  float Reply = 0;
  EXPECT_EQ(ask(Create("a=policy.onnx"), &Reply), MLBridgeStatusSchemaMismatch);
  EXPECT_THAT(lastMessage(), HasSubstr("'_agent'"));
  EXPECT_EQ(ask(Create("./a=policy.onnx"), &Reply), MLBridgeStatusSuccess);
  EXPECT_EQ(Reply, 3);
  std::filesystem::current_path(Before);
}

} // namespace
