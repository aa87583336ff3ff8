//===- WatchdogTest.cpp - Interrupting late evaluations -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InProcess/Watchdog.h"
#include "support/AllocationCounter.h"
#include "support/Child.h"
#include "support/Sanitizers.h"

#include <gtest/gtest.h>

#include <csignal>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace MLBridge;
using namespace MLBridge::inprocess;
using namespace std::chrono_literals;

namespace {
/// An evaluation that ends only when interrupted.
struct Endless final : Interruptible {
  void interrupt() override { IsInterrupted = true; }
  void resume() override {
    IsInterrupted = false;
    ++Resumed;
  }
  void run() const {
    while (!IsInterrupted)
      std::this_thread::yield();
  }

  std::atomic<bool> IsInterrupted = false;
  int Resumed = 0;
};
} // namespace

TEST(Watchdog, InterruptsLateEvaluations) {
  Endless Evaluation;
  Watch W(Evaluation);
  for (int Round = 1; Round <= 3; ++Round) {
    const Deadline Until = Deadline::in(20ms);
    ASSERT_FALSE(W.begin(Until));
    Evaluation.run();
    EXPECT_TRUE(Until.expired());
    EXPECT_TRUE(W.end());
    EXPECT_EQ(Evaluation.Resumed, Round);
    // If an evaluation ends in time, it is not interrupted.
    ASSERT_FALSE(W.begin(Deadline::in(1h)));
    EXPECT_FALSE(W.end());
    ASSERT_FALSE(W.begin(Deadline::never()));
    EXPECT_FALSE(W.end());
    EXPECT_FALSE(Evaluation.IsInterrupted);
    EXPECT_EQ(Evaluation.Resumed, Round);
  }
}

TEST(Watchdog, DoesNotAllocateOnceItRuns) {
  Endless Evaluation;
  Watch W(Evaluation);
  auto Evaluate = [&] {
    EXPECT_FALSE(W.begin(Deadline::in(1h)));
    EXPECT_FALSE(W.end());
  };
  Evaluate();
  test::AllocationCounter Counter;
  for (int I = 0; I < 1000; ++I)
    Evaluate();
  EXPECT_EQ(Counter.count(), 0U);
}

TEST(Watchdog, ManyShortWatches) {
  std::vector<std::thread> Threads;
  std::atomic<int> Interrupted = 0;
  for (int T = 0; T < 8; ++T)
    Threads.emplace_back([&Interrupted] {
      for (int Round = 0; Round < 50; ++Round) {
        Endless Evaluation;
        Watch W(Evaluation);
        EXPECT_FALSE(W.begin(Deadline::in(1h)));
        EXPECT_FALSE(W.end());
        EXPECT_FALSE(W.begin(Deadline::in(1ms)));
        Evaluation.run();
        Interrupted += W.end();
      }
    });
  for (std::thread &Thread : Threads)
    Thread.join();
  EXPECT_EQ(Interrupted, 8 * 50);
}

TEST(Watchdog, EndingAndInterruptingAtOnce) {
  // end() and the evaluation must agree on whether the evaluation was
  // interrupted before its end.
  Endless Evaluation;
  Watch W(Evaluation);
  int Late = 0;
  for (int Round = 0; Round < 5000; ++Round) {
    ASSERT_FALSE(W.begin(Deadline::in(std::chrono::microseconds(Round % 50))));
    for (int Spin = 0; Spin < 50 * (Round % 7); ++Spin)
      std::atomic_signal_fence(std::memory_order_seq_cst);
    const int Before = Evaluation.Resumed;
    const bool WasLate = W.end();
    ASSERT_EQ(Evaluation.Resumed, Before + WasLate);
    ASSERT_FALSE(Evaluation.IsInterrupted);
    Late += WasLate;
  }
  RecordProperty("late", Late);
}

TEST(Watchdog, EndWaitsForAnInterruption) {
  // The evaluation ends while its slow interruption still runs.
  struct Slow final : Interruptible {
    void interrupt() override {
      HasBegun = true;
      std::this_thread::sleep_for(50ms);
      HasEnded = true;
    }
    void resume() override { WasOver = HasEnded.load(); }
    std::atomic<bool> HasBegun = false, HasEnded = false;
    bool WasOver = false;
  } Evaluation;
  Watch W(Evaluation);
  ASSERT_FALSE(W.begin(Deadline::in(10ms)));
  while (!Evaluation.HasBegun)
    std::this_thread::yield();
  EXPECT_TRUE(W.end());
  EXPECT_TRUE(Evaluation.WasOver);
}

TEST(Watchdog, ARawCloneLeavesTheParentsWatchesAlone) {
  MLBRIDGE_SKIP_FORKS_UNDER_TSAN();
  Endless Evaluation;
  auto W = std::make_unique<Watch>(Evaluation);
  ASSERT_FALSE(W->begin(Deadline::in(1h)));
  EXPECT_FALSE(W->end());
  const auto Pid = static_cast<pid_t>(
      ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  ASSERT_GE(Pid, 0);
  if (Pid == 0) {
    // If the child waited for the parent's thread, it would wait forever.
    ::alarm(10);
    W.reset();
    ::_exit(0);
  }
  int Status = 0;
  ASSERT_EQ(::waitpid(Pid, &Status, 0), Pid);
  EXPECT_TRUE(WIFEXITED(Status));
}

TEST(Watchdog, AChildLeavesTheParentsWatchesAlone) {
  MLBRIDGE_SKIP_FORKS_UNDER_TSAN();
  Endless Evaluation;
  auto W = std::make_unique<Watch>(Evaluation);
  ASSERT_FALSE(W->begin(Deadline::in(1h)));
  EXPECT_FALSE(W->end());
  test::Child Forked([&] {
    W.reset();
    // The child has no copy of the parent's thread. If the child relied on that
    // thread, its own watch would be checked too late.
    Watch Own(Evaluation);
    if (Own.begin(Deadline::in(20ms)))
      return 1;
    Evaluation.run();
    return Own.end() ? 0 : 2;
  });
  EXPECT_EQ(Forked.wait(), 0);
}
