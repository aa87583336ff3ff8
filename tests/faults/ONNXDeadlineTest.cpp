//===- ONNXDeadlineTest.cpp - ONNX models that take too long --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests that a model that would run for centuries ends at the request's
/// deadline, without an effect on other requests and threads.
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
#include <fstream>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// The number of iterations of a loop that no deadline allows to end.
static constexpr std::int64_t Centuries = std::int64_t(1) << 62;
/// The additional time that a wait may take on a loaded machine.
static constexpr auto Slack = 5s;

namespace {
class ONNXDeadlineTest : public ONNXTest {
protected:
  std::unique_ptr<ONNXModelRunner> makeRunner(Duration Timeout) {
    auto Runner = std::make_unique<ONNXModelRunner>(
        write(addInALoop(), "loop.onnx"), DecisionOptions(), Options);
    Runner->setTimeout(Timeout);
    return Runner;
  }
  static Expected<float> ask(MLModelRunner &Runner, float X, std::int64_t N) {
    Runner.populateFeatures(std::pair{"x", X}, std::pair{"n", N});
    return Runner.tryEvaluate<float>();
  }
  static std::size_t numThreads() {
    return static_cast<std::size_t>(std::distance(
        std::filesystem::directory_iterator("/proc/self/task"), {}));
  }
  /// True if the number of threads soon becomes \p Wanted. Joined threads stay
  /// listed for a moment.
  static bool reaches(std::size_t Wanted) {
    for (Deadline Until = Deadline::in(2s); !Until.expired();)
      if (numThreads() == Wanted)
        return true;
    return false;
  }
};
} // namespace

TEST_F(ONNXDeadlineTest, ALoopWithoutAnEndIsInterrupted) {
  auto Runner = makeRunner(200ms);
  for (int Round = 0; Round < 3; ++Round) {
    EXPECT_EQ(*ask(*Runner, 1, 3), 4);
    const auto Start = Clock::now();
    Error E = ask(*Runner, 1, Centuries).takeError();
    const auto Waited = Clock::now() - Start;
    EXPECT_EQ(E.code(), ErrorCode::Timeout);
    EXPECT_EQ(E.message(), "onnx:" + path("loop.onnx") +
                               " did not answer before the deadline");
    EXPECT_GE(Waited, 200ms);
    EXPECT_LT(Waited, 200ms + Slack);
    EXPECT_EQ(*ask(*Runner, 5, 2), 7) << "the runner can be asked again";
  }
}

TEST_F(ONNXDeadlineTest, SpecsAndDecoratorsHaveDeadlinesToo) {
  const std::string Spec =
      "fallback|onnx:" + write(addInALoop()) + "?timeout=100ms";
  Expected<std::unique_ptr<MLModelRunner>> Runner = Factory.create(Spec);
  ASSERT_TRUE(Runner) << Runner.message();
  Error E = ask(**Runner, 1, Centuries).takeError();
  EXPECT_EQ(E.code(), ErrorCode::Deferred);
  EXPECT_THAT(E.message(), testing::HasSubstr("failed: Timeout: onnx:"));
}

TEST_F(ONNXDeadlineTest, ALaterRequestMayHaveAnEarlierDeadline) {
  auto Patient = makeRunner(1h), Impatient = makeRunner(100ms);
  EXPECT_EQ(*ask(*Patient, 1, 3), 4); // The watchdog sleeps for an hour.
  const auto Start = Clock::now();
  EXPECT_EQ(ask(*Impatient, 1, Centuries).code(), ErrorCode::Timeout);
  EXPECT_LT(Clock::now() - Start, Slack);
}

TEST_F(ONNXDeadlineTest, ADeadlineMayHavePassed) {
  auto Runner = makeRunner(0s);
  EXPECT_EQ(ask(*Runner, 1, Centuries).code(), ErrorCode::Timeout);
  Runner->setTimeout(1h);
  EXPECT_EQ(*ask(*Runner, 1, 3), 4);
}

TEST_F(ONNXDeadlineTest, OneThreadServesAllRunnersAndEndsWithTheLast) {
  // TSan starts its own thread along with the first thread of the program.
  std::thread([] {}).join();
  const std::size_t Before = numThreads();
  {
    auto First = makeRunner(Duration::max());
    EXPECT_EQ(*ask(*First, 1, 3), 4);
    EXPECT_EQ(numThreads(), Before) << "without deadlines there is no watchdog";
    First->setTimeout(1h);
    EXPECT_EQ(*ask(*First, 1, 3), 4);
    auto Second = makeRunner(10s);
    EXPECT_EQ(numThreads(), Before + 1);
    EXPECT_EQ(*ask(*Second, 1, 3), 4);
    EXPECT_EQ(numThreads(), Before + 1);
    First.reset();
    EXPECT_EQ(*ask(*Second, 1, 3), 4);
    EXPECT_EQ(numThreads(), Before + 1);
  }
  EXPECT_TRUE(reaches(Before)) << numThreads();
}

TEST_F(ONNXDeadlineTest, OnlyLateRequestsAreInterrupted) {
  constexpr int NumThreads = 6;
  std::atomic<int> Wrong = 0, Late = 0;
  std::vector<std::thread> Threads;
  std::vector<std::unique_ptr<ONNXModelRunner>> Runners;
  for (int T = 0; T < NumThreads; ++T)
    Runners.push_back(makeRunner(1h));
  for (int T = 0; T < NumThreads; ++T)
    Threads.emplace_back([&, T, Runner = Runners[std::size_t(T)].get()] {
      for (int Round = 0; Round < 40; ++Round) {
        const bool IsLate = Round % 8 == T;
        Runner->setTimeout(IsLate ? Duration(5ms) : Duration(1h));
        Expected<float> Reply = ask(*Runner, 1, IsLate ? Centuries : 3);
        Late += Reply.code() == ErrorCode::Timeout;
        Wrong +=
            IsLate ? Reply.code() != ErrorCode::Timeout : !Reply || *Reply != 4;
      }
    });
  for (std::thread &Thread : Threads)
    Thread.join();
  EXPECT_EQ(Wrong, 0);
  EXPECT_EQ(Late, NumThreads * 5);
}

TEST_F(ONNXDeadlineTest, AReplyAtTheDeadlineIsRightOrLate) {
  auto Runner = makeRunner(1h);
  constexpr std::int64_t N = 2000;
  // Use the shortest time, because other processes may slow an evaluation down.
  Duration Usual = Duration::max();
  for (int I = 0; I < 20; ++I) {
    const auto Start = Clock::now();
    ASSERT_EQ(*ask(*Runner, 1, N), N + 1);
    Usual = std::min<Duration>(Usual, Clock::now() - Start);
  }
  int Right = 0, Late = 0;
  for (int Round = 0; Round < 300; ++Round) {
    Runner->setTimeout(Usual * (80 + Round % 40) / 100);
    Expected<float> Reply = ask(*Runner, 1, N);
    if (Reply) {
      ++Right;
      ASSERT_EQ(*Reply, N + 1);
    } else {
      ++Late;
      ASSERT_EQ(Reply.code(), ErrorCode::Timeout) << Reply.message();
    }
    // A late request must not affect the next request.
    Runner->setTimeout(1h);
    ASSERT_EQ(*ask(*Runner, 1, 3), 4);
  }
  EXPECT_GT(Late, 0);
  RecordProperty("right", Right);
}

TEST_F(ONNXDeadlineTest, AProcessMayEndWhileItIsWatched) {
  Child Ending([&] {
    // std::exit() destroys this runner while the watchdog sleeps.
    static std::unique_ptr<ONNXModelRunner> Left = makeRunner(1h);
    if (!ask(*Left, 1, 3))
      return 1;
    // This runner is never destroyed.
    static ONNXModelRunner *const Leaked = makeRunner(1h).release();
    if (!ask(*Leaked, 1, 3))
      return 1;
    std::exit(7);
  });
  EXPECT_EQ(Ending.wait(), 7);
}

TEST_F(ONNXDeadlineTest, AChildHasItsOwnWatchdog) {
  MLBRIDGE_SKIP_FORKS_UNDER_TSAN();
  auto Runner = makeRunner(200ms);
  EXPECT_EQ(ask(*Runner, 1, Centuries).code(), ErrorCode::Timeout);
  Child Forked([&] {
    if (numThreads() != 1)
      return 1;
    if (ask(*Runner, 1, Centuries).code() != ErrorCode::Timeout)
      return 2;
    if (numThreads() != 2)
      return 3;
    Expected<float> Reply = ask(*Runner, 1, 3);
    if (!Reply || *Reply != 4)
      return 4;
    // The child's watchdog ends with the runner, and does not wait for the
    // parent's watchdog.
    Runner.reset();
    return reaches(1) ? 0 : 5;
  });
  EXPECT_EQ(Forked.wait(), 0);
  EXPECT_EQ(*ask(*Runner, 1, 3), 4);
  EXPECT_EQ(ask(*Runner, 1, Centuries).code(), ErrorCode::Timeout);
}

TEST_F(ONNXDeadlineTest, TheWatchdogHandlesNoSignal) {
  static std::atomic<int> Handled = 0;
  static std::atomic<pid_t> Handler = 0;
  struct sigaction Action = {}, Before;
  Action.sa_handler = [](int) {
    ++Handled;
    Handler = ::gettid();
  };
  ASSERT_EQ(::sigaction(SIGUSR1, &Action, &Before), 0);
  auto Runner = makeRunner(1h);
  EXPECT_EQ(*ask(*Runner, 1, 3), 4);
  for (int I = 0; I < 20; ++I)
    ::kill(::getpid(), SIGUSR1);
  EXPECT_GT(Handled, 0);
  EXPECT_EQ(Handler, ::gettid());
  ::sigaction(SIGUSR1, &Before, nullptr);
}

TEST_F(ONNXDeadlineTest, AnUnstartableWatchdogIsAnError) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can become a user who has no process yet";
  Child Limited([&] {
    auto Runner = makeRunner(Duration::max());
    if (!ask(*Runner, 1, 3))
      return 1;
    // The id of a user who has no processes.
    constexpr uid_t Nobody = 64'999;
    const rlimit None{1, 1};
    if (::setrlimit(RLIMIT_NPROC, &None) != 0 || ::setuid(Nobody) != 0)
      return 2;
    Runner->setTimeout(1h);
    Error E = ask(*Runner, 1, 3).takeError();
    if (E.code() != ErrorCode::System ||
        !E.message().starts_with("onnx:" + path("loop.onnx") +
                                 ": cannot start the thread that "
                                 "interrupts late evaluations"))
      return 3;
    Runner->setTimeout(Duration::max());
    Expected<float> Reply = ask(*Runner, 1, 3);
    return Reply && *Reply == 4 ? 0 : 4;
  });
  EXPECT_EQ(Limited.wait(), 0);
}
