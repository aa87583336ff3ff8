//===- TrialProcess.cpp - Tries an allocation in a forked process ---------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Forks a copy of the compiler. The copy must not run the compiler's handlers,
/// because they remove the compiler's output files.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/TrialProcess.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/ErrorHandling.h"

#include <climits>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <iterator>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;

namespace MLBridge {

static constexpr int Failure = 3;

unsigned countThreads() {
  std::error_code Unknown;
  std::filesystem::directory_iterator Threads("/proc/self/task", Unknown);
  return Unknown ? 0 : std::distance(begin(Threads), end(Threads));
}

[[noreturn]] static void endCopy() { _exit(Failure); }

/// Separates the copy from the compiler's handlers and output.
static void becomeCopy(pid_t Compiler) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != Compiler)
    endCopy();
  for (int Signal = 1; Signal < NSIG; ++Signal)
    signal(Signal, SIG_DFL);
  remove_fatal_error_handler();
  install_fatal_error_handler([](void *, const char *, bool) { endCopy(); });
  // Register endCopy() last, because exit() calls it before earlier functions.
  std::atexit(endCopy);
  if (const int Null = open("/dev/null", O_WRONLY | O_CLOEXEC); Null >= 0) {
    dup2(Null, STDOUT_FILENO);
    dup2(Null, STDERR_FILENO);
  }
}

Trial forkTrial(std::chrono::milliseconds Limit) {
  Trial Result;
  int Ends[2];
  if (pipe2(Ends, O_CLOEXEC) != 0) {
    Result.NotStarted = std::error_code(errno, std::generic_category());
    return Result;
  }
  const pid_t Compiler = getpid();
  const pid_t Copy = fork();
  if (Copy == 0) {
    close(Ends[0]);
    becomeCopy(Compiler);
    Result.IsCopy = true;
    Result.Pipe = Ends[1];
    return Result;
  }
  if (Copy < 0)
    Result.NotStarted = std::error_code(errno, std::generic_category());
  close(Ends[1]);
  auto CloseEnd = scope_exit([&] { close(Ends[0]); });
  if (Copy < 0)
    return Result;

  static_assert(sizeof(TrialOutcome) <= PIPE_BUF,
                "an outcome must arrive whole or not at all");
  TrialOutcome Sent;
  const auto Deadline = std::chrono::steady_clock::now() + Limit;
  pollfd Readable{Ends[0], POLLIN, 0};
  int Ready = -1;
  do {
    const auto Left = std::chrono::duration_cast<std::chrono::milliseconds>(
        Deadline - std::chrono::steady_clock::now());
    Ready = poll(&Readable, 1, std::max<int>(0, Left.count()));
  } while (Ready < 0 && errno == EINTR);
  if (Ready > 0 && sys::RetryAfterSignal(-1, ::read, Ends[0], &Sent,
                                         sizeof Sent) == sizeof Sent)
    Result.Outcome = Sent;
  // If the copy has ended, another process may already have its identifier,
  // because the compiler's parent may have made the compiler ignore SIGCHLD.
  Result.IsLate = Ready == 0;
  if (Ready <= 0)
    kill(Copy, SIGKILL);
  sys::RetryAfterSignal(-1, ::waitpid, Copy, nullptr, 0);
  return Result;
}

void endTrial(int Pipe, const TrialOutcome &Outcome) {
  const ssize_t Written =
      sys::RetryAfterSignal(-1, ::write, Pipe, &Outcome, sizeof Outcome);
  _exit(Written == sizeof Outcome ? 0 : Failure);
}

} // namespace MLBridge
