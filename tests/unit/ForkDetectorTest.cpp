//===- ForkDetectorTest.cpp - Detecting forks -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/ForkDetector.h"
#include "support/Child.h"

#include <gtest/gtest.h>

#include <csignal>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;

TEST(ForkDetector, TellsChildrenFromTheirParent) {
  ForkDetector Detector;
  EXPECT_FALSE(Detector.isForked());
  Child Forked([&] {
    if (!Detector.isForked())
      return 1;
    Child Grandchild([&] { return Detector.isForked() ? 0 : 1; });
    return Grandchild.wait();
  });
  EXPECT_EQ(Forked.wait(), 0);
  EXPECT_FALSE(Detector.isForked());
}

TEST(ForkDetector, AChildMayClaimIt) {
  ForkDetector Detector;
  Child Forked([&] {
    Detector.claim();
    if (Detector.isForked())
      return 1;
    Child Grandchild([&] { return Detector.isForked() ? 0 : 1; });
    return Grandchild.wait();
  });
  EXPECT_EQ(Forked.wait(), 0);
  EXPECT_FALSE(Detector.isForked());
}

TEST(ForkDetector, NoticesARawCloneSystemCall) {
  ForkDetector Detector;
  const auto Pid = static_cast<pid_t>(
      ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  ASSERT_GE(Pid, 0);
  if (Pid == 0)
    ::_exit(Detector.isForked() ? 0 : 1);
  int Status = 0;
  ASSERT_EQ(::waitpid(Pid, &Status, 0), Pid);
  EXPECT_TRUE(WIFEXITED(Status));
  EXPECT_EQ(WEXITSTATUS(Status), 0);
}
