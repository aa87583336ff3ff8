//===- RunClient.cpp - Runs a command and measures it ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs a compiler for `mlbridge bench overhead` and measures it:
///
///     run-client COMMAND ARGUMENT...
///
/// Prints the duration, the CPU time and the peak memory as a line of JSON on
/// stdout. The kernel's peak of a process includes the memory that its parent
/// had when the process started. Therefore, the parent is this small program
/// instead of Python.
///
//===----------------------------------------------------------------------===//

#include "ClientSupport.h"

#include <chrono>
#include <cstring>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace MLBridge::bench;
using Clock = std::chrono::steady_clock;

static double seconds(const timeval &Time) {
  return static_cast<double>(Time.tv_sec) +
         1e-6 * static_cast<double>(Time.tv_usec);
}

int main(int NumArguments, char **Arguments) {
  if (NumArguments < 2)
    fail("usage: run-client COMMAND ARGUMENT...");
  const Clock::time_point Start = Clock::now();
  pid_t Child = 0;
  if (int Problem = ::posix_spawnp(&Child, Arguments[1], nullptr, nullptr,
                                   Arguments + 1, ::environ))
    fail(std::string(Arguments[1]) + ": " + std::strerror(Problem));
  int Status = 0;
  rusage Used{};
  if (::wait4(Child, &Status, 0, &Used) != Child)
    fail("cannot wait for the command");
  const std::chrono::duration<double> Took = Clock::now() - Start;
  if (!WIFEXITED(Status) || WEXITSTATUS(Status) != 0)
    fail(std::string(Arguments[1]) + " failed");
  std::printf("{\"seconds\":%.6f,\"cpu_seconds\":%.6f,\"rss_kib\":%ld}\n",
              Took.count(), seconds(Used.ru_utime) + seconds(Used.ru_stime),
              Used.ru_maxrss);
}
