//===- AdaptiveWaitTest.cpp - When a wait spins or sleeps -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Transport/AdaptiveWait.h"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

using namespace MLBridge;

namespace {

bool never() { return false; }
bool atOnce() { return true; }

/// Returns a probe that succeeds at its second call, like a quick peer's reply.
auto soon() {
  return [First = true]() mutable { return !std::exchange(First, false); };
}

/// Returns the number of waits without a probe before a wait with a probe.
unsigned countSkipped(AdaptiveWait &Wait) {
  for (unsigned Skipped = 0;; ++Skipped) {
    bool Probed = false;
    Wait.spin([&] {
      Probed = true;
      return false;
    });
    if (Probed)
      return Skipped;
  }
}

} // namespace

TEST(AdaptiveWaitTest, SpinsAtFirst) {
  AdaptiveWait Wait;
  EXPECT_TRUE(Wait.spin(soon()));
}

TEST(AdaptiveWaitTest, SpinsForItsBudgetAndNoLonger) {
  AdaptiveWait Wait;
  auto Start = std::chrono::steady_clock::now();
  EXPECT_FALSE(Wait.spin(never));
  EXPECT_GE(std::chrono::steady_clock::now() - Start, AdaptiveWait::Budget);
}

TEST(AdaptiveWaitTest, ProbesLessOftenAfterEachFailure) {
  AdaptiveWait Wait;
  EXPECT_FALSE(Wait.spin(never));
  for (unsigned Expected = 1; Expected < AdaptiveWait::MaxSkip;
       Expected = 2 * Expected + 1)
    EXPECT_EQ(countSkipped(Wait), Expected);
  EXPECT_EQ(countSkipped(Wait), AdaptiveWait::MaxSkip);
  EXPECT_EQ(countSkipped(Wait), AdaptiveWait::MaxSkip) << "never more rarely";
}

TEST(AdaptiveWaitTest, AReplyWhileSpinningEndsTheBackoff) {
  AdaptiveWait Wait;
  EXPECT_FALSE(Wait.spin(never));
  EXPECT_EQ(countSkipped(Wait), 1u);
  EXPECT_EQ(countSkipped(Wait), 3u);
  for (unsigned I = 0; I < 7; ++I)
    EXPECT_FALSE(Wait.spin(atOnce)) << "still backing off";
  EXPECT_TRUE(Wait.spin(soon()));
  EXPECT_FALSE(Wait.spin(never)) << "this wait must spin";
  EXPECT_EQ(countSkipped(Wait), 1u);
}

TEST(AdaptiveWaitTest, AReplyBeforeTheWaitKeepsTheBackoff) {
  // On a shared core the reply arrives while the waiter is not running, and
  // spinning would take the core from the peer.
  AdaptiveWait Wait;
  EXPECT_FALSE(Wait.spin(never));
  EXPECT_EQ(countSkipped(Wait), 1u);
  for (unsigned I = 0; I < 3; ++I)
    EXPECT_FALSE(Wait.spin(atOnce));
  EXPECT_TRUE(Wait.spin(atOnce));
  EXPECT_FALSE(Wait.spin(never));
  EXPECT_EQ(countSkipped(Wait), 7u);
}
