//===- ONNXForkTest.cpp - ONNX models across fork() -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests that a runner works in both processes after a fork().
///
//===----------------------------------------------------------------------===//

#include "support/Child.h"
#include "support/ONNXTest.h"
#include "support/Sanitizers.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;
using namespace std::chrono_literals;

namespace {
class ONNXForkTest : public ONNXTest {
protected:
  std::unique_ptr<MLModelRunner> makeRunner(const std::string &Spec) {
    Expected<std::unique_ptr<MLModelRunner>> Made = Factory.create(Spec);
    EXPECT_TRUE(Made) << Made.message();
    return Made ? std::move(*Made) : nullptr;
  }
  static Expected<float> ask(MLModelRunner &Runner, float X) {
    Runner.populateFeatures(std::pair{"x", X});
    return Runner.tryEvaluate<float>();
  }
  /// Like Child::wait(), but kills a process that does not end.
  static int endOf(Child &Waited) {
    for (int Tries = 0; Tries < 200; ++Tries) {
      siginfo_t Info = {};
      if (::waitid(P_PID, static_cast<id_t>(Waited.pid()), &Info,
                   WEXITED | WNOHANG | WNOWAIT) == 0 &&
          Info.si_pid != 0)
        return Waited.wait();
      std::this_thread::sleep_for(50ms);
    }
    ADD_FAILURE() << "the process did not end within 10 s";
    Waited.kill();
    return -1;
  }
  static bool answers(MLModelRunner &Runner, int Times) {
    for (int I = 0; I < Times; ++I)
      if (Expected<float> Reply = ask(Runner, float(I));
          !Reply || *Reply != float(I + 1))
        return false;
    return true;
  }
};
} // namespace

TEST_F(ONNXForkTest, ParentAndChildGoOnAsking) {
  MLBRIDGE_SKIP_FORKS_UNDER_TSAN();
  auto Runner = makeRunner("onnx:" + write(add(1)));
  ASSERT_TRUE(answers(*Runner, 10));
  Child Forked([&] {
    if (!answers(*Runner, 100))
      return 1;
    Child Grandchild([&] { return answers(*Runner, 100) ? 0 : 1; });
    if (!answers(*Runner, 100))
      return 2;
    Runner.reset();
    return Grandchild.wait();
  });
  EXPECT_TRUE(answers(*Runner, 100));
  EXPECT_EQ(Forked.wait(), 0);
  EXPECT_TRUE(answers(*Runner, 10));
}

TEST_F(ONNXForkTest, AChildHasASessionOfItsOwn) {
  const std::string File = write(add(1));
  ONNXModelRunner Runner(File, {}, Options);
  auto Spec = makeRunner("onnx:" + File);
  ASSERT_TRUE(answers(Runner, 10) && answers(*Spec, 10));
  const Model *Parents = *Runner.model();
  Child Forked([&] {
    Expected<const Model *> Own = Runner.model();
    return !Own || *Own == Parents ? 1 : 0;
  });
  EXPECT_EQ(Forked.wait(), 0);
  EXPECT_EQ(*Runner.model(), Parents);

  // A child must load the file again before it can reply, so it fails without
  // the file.
  std::filesystem::remove(File);
  Child WithoutFile([&] {
    return ask(Runner, 1).code() == ErrorCode::System &&
                   ask(*Spec, 1).code() == ErrorCode::System
               ? 0
               : 1;
  });
  EXPECT_EQ(WithoutFile.wait(), 0);
  EXPECT_TRUE(answers(Runner, 10) && answers(*Spec, 10));
}

TEST_F(ONNXForkTest, AChildComesToAnEnd) {
  MLBRIDGE_SKIP_FORKS_UNDER_TSAN();
  auto Runner = makeRunner("onnx:" + write(add(1)));
  ASSERT_TRUE(answers(*Runner, 10));
  // std::exit() runs the exit handlers of the libraries.
  Child Idle([]() -> int { std::exit(7); });
  EXPECT_EQ(endOf(Idle), 7);
  if (MLBRIDGE_UNDER_ASAN)
    GTEST_SKIP() << "leaks, on purpose, the parent's session";
  Child Asking([&]() -> int {
    const bool IsRight = answers(*Runner, 10);
    Runner.reset();
    std::exit(IsRight ? 7 : 1);
  });
  EXPECT_EQ(endOf(Asking), 7);
}

TEST_F(ONNXForkTest, AForkDuringRequestsOfOtherThreads) {
  MLBRIDGE_SKIP_FORKS_UNDER_TSAN();
  const std::string Spec = "onnx:" + write(add(1));
  auto Runner = makeRunner(Spec);
  ASSERT_TRUE(answers(*Runner, 10));
  std::atomic<bool> Stop = false;
  std::atomic<int> Wrong = 0;
  std::vector<std::thread> Others;
  for (int I = 0; I < 4; ++I)
    Others.emplace_back([&] {
      // Loading and evaluating both hold locks.
      while (!Stop) {
        auto Own = makeRunner(Spec);
        Wrong += !answers(*Own, 50);
      }
    });
  for (int Round = 0; Round < 40; ++Round) {
    Child Forked([&] {
      // If the child deadlocks, it must fail instead of hanging.
      ::alarm(20);
      if (!answers(*Runner, 5))
        return 1;
      return answers(*makeRunner(Spec), 5) ? 0 : 2;
    });
    EXPECT_EQ(Forked.wait(), 0) << Round;
  }
  Stop = true;
  for (std::thread &Other : Others)
    Other.join();
  EXPECT_EQ(Wrong, 0);
}
