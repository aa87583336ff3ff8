//===- tests/support/Child.cpp - A forked child process ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Child.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace MLBridge::test;

Child::Child(const std::function<int()> &Main) {
  std::fflush(nullptr);
  pid_t Parent = ::getpid();
  Pid = ::fork();
  if (Pid < 0) {
    std::perror("fork");
    std::exit(1);
  }
  if (Pid != 0)
    return;
  // The child must end with the test, however the test ends.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != Parent)
    ::_exit(1);
  ::_exit(Main());
}

Child::~Child() { kill(); }

void Child::signal(int Number) const {
  if (Pid > 0)
    ::kill(Pid, Number);
}

void Child::kill() {
  signal(SIGKILL);
  wait();
}

int Child::wait() {
  if (Pid <= 0)
    return -1;
  int Status = 0;
  while (::waitpid(Pid, &Status, 0) < 0 && errno == EINTR)
    ;
  Pid = -1;
  return WIFEXITED(Status) ? WEXITSTATUS(Status) : 128 + WTERMSIG(Status);
}

std::size_t MLBridge::test::countOpenDescriptors() {
  std::size_t Count = 0;
  for ([[maybe_unused]] const auto &Entry :
       std::filesystem::directory_iterator("/proc/self/fd"))
    ++Count;
  return Count;
}

std::size_t MLBridge::test::residentBytes() {
  std::ifstream Statm("/proc/self/statm");
  std::size_t Total = 0, Resident = 0;
  Statm >> Total >> Resident;
  return Resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}
