//===- TrialProcessTest.cpp - Trials that fail --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests that a trial never harms the compiler, whatever happens in the trial.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/TrialProcess.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sys/resource.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

using namespace MLBridge;
using namespace std::chrono_literals;

namespace {

/// Runs \p InCopy in a trial. If \p InCopy returns, the trial's cost has 7
/// spills.
Trial run(const std::function<void()> &InCopy,
          std::chrono::milliseconds Limit = 20s) {
  Trial Result = forkTrial(Limit);
  if (!Result.IsCopy)
    return Result;
  InCopy();
  TrialOutcome Sent;
  Sent.Cost.Spills = 7;
  endTrial(Result.Pipe, Sent);
}

TEST(TrialProcess, ReturnsTheCost) {
  const Trial Result = run([] {});
  ASSERT_TRUE(Result.Outcome);
  EXPECT_EQ(Result.Outcome->Cost.Spills, 7u);
  // The trial's process has ended.
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(TrialProcess, ChangesNothingInTheCompiler) {
  int Value = 1;
  run([&] { Value = 2; });
  EXPECT_EQ(Value, 1);
}

TEST(TrialProcess, PrintsNothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  run([] {
    std::puts("out");
    std::fflush(stdout);
    std::fputs("err\n", stderr);
  });
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

struct Crash {
  const char *Name;
  void (*Run)();
};

const Crash Crashes[] = {
    {"Abort", [] { std::abort(); }},
    {"Exit", [] { std::exit(0); }},
    {"QuickExit", [] { _exit(0); }},
    {"Segfault", [] { std::raise(SIGSEGV); }},
    {"Terminated", [] { std::raise(SIGTERM); }},
    {"Fatal", [] { llvm::report_fatal_error("no"); }},
    {"FatalQuietly", [] { llvm::report_fatal_error("no", false); }},
};

class CrashingTrial : public testing::TestWithParam<Crash> {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("trial", "o", Path));
    ASSERT_FALSE(llvm::sys::RemoveFileOnSignal(Path));
  }
  void TearDown() override {
    llvm::sys::DontRemoveFileOnSignal(Path);
    static_cast<void>(llvm::sys::fs::remove(Path));
  }

  /// A file that LLVM removes if the process crashes.
  llvm::SmallString<128> Path;
};

TEST_P(CrashingTrial, HasNoCost) {
  EXPECT_FALSE(run(GetParam().Run).Outcome);
  EXPECT_TRUE(llvm::sys::fs::exists(Path));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

INSTANTIATE_TEST_SUITE_P(By, CrashingTrial, testing::ValuesIn(Crashes),
                         [](const auto &Info) {
                           return std::string(Info.param.Name);
                         });

TEST(TrialProcess, EndsAtItsLimit) {
  const auto Begin = std::chrono::steady_clock::now();
  const Trial Late = run([] { pause(); }, 50ms);
  EXPECT_FALSE(Late.Outcome);
  EXPECT_TRUE(Late.IsLate);
  EXPECT_LT(std::chrono::steady_clock::now() - Begin, 10s);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(TrialProcess, ReportsThatNoProcessCouldBeStarted) {
  rlimit Before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &Before), 0);
  rlimit None = Before;
  None.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &None), 0);
  const Trial Result = run([] {});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &Before), 0);
  EXPECT_FALSE(Result.Outcome);
  EXPECT_EQ(Result.NotStarted, std::errc::too_many_files_open);
}

TEST(TrialProcess, LeavesOtherProcessesAlone) {
  // The parent of a compiler can make it ignore SIGCHLD. An ended trial then
  // leaves no zombie.
  const auto Before = std::signal(SIGCHLD, SIG_IGN);
  EXPECT_TRUE(run([] {}).Outcome);
  EXPECT_FALSE(run([] { std::raise(SIGSEGV); }).Outcome);
  std::signal(SIGCHLD, Before);
}

TEST(TrialProcess, CountsThreads) {
  EXPECT_EQ(countThreads(), 1u);
  std::thread Other([] {
    // Under TSan there would be one more thread, but this test is not built for
    // TSan.
    EXPECT_EQ(countThreads(), 2u);
  });
  Other.join();
}

} // namespace
