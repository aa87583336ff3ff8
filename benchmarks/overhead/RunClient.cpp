//===- RunClient.cpp - Runs a command, and says what it took --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What `mlbridge bench overhead` starts compilers with:
///
///     run-client COMMAND ARGUMENT...
///
/// A line of JSON on stdout says how long it took, what time it had a core for,
/// and the most memory that it had. A process begins with the memory of the one
/// that started it, as far as the kernel's books go; so this is a small
/// program, and not Python.
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
    fail("the command cannot be waited for");
  const std::chrono::duration<double> Took = Clock::now() - Start;
  if (!WIFEXITED(Status) || WEXITSTATUS(Status) != 0)
    fail(std::string(Arguments[1]) + " failed");
  std::printf("{\"seconds\":%.6f,\"cpu_seconds\":%.6f,\"rss_kib\":%ld}\n",
              Took.count(), seconds(Used.ru_utime) + seconds(Used.ru_stime),
              Used.ru_maxrss);
}
