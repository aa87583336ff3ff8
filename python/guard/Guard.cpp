//===- Guard.cpp - A compiler that ends with its host -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// mlbridge-guard runs a compiler for mlbridge.interactive:
///
///     mlbridge-guard HOST MILLISECONDS FOLDER COMMAND [ARGUMENT...]
///
/// The guard is needed because a stock compiler spins forever when its
/// interactive channel closes. The process HOST cannot always end the compiler:
/// HOST may have been killed, or its policy may hang. The guard runs COMMAND
/// and exits with the command's status. When HOST exits, or after MILLISECONDS,
/// the guard kills its process group, which contains COMMAND, all processes
/// that COMMAND has started, and the guard itself. If MILLISECONDS is -1, there
/// is no time limit. In each case, the guard first removes FOLDER and the files
/// in it.
///
/// PR_SET_PDEATHSIG in the compiler would not be enough. It depends on the
/// thread that started the child instead of on the process, and cc1 and linkers
/// do not inherit it.
///
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using Clock = std::chrono::steady_clock;

static constexpr int BadUsage = 2;
/// The exit status for a command that cannot be run, as in a shell.
static constexpr int CannotRun = 127;

static int fail(const char *What, int Code) {
  std::fprintf(stderr, "mlbridge-guard: %s: %s\n", What, std::strerror(Code));
  return CannotRun;
}

static bool parse(std::string_view Text, long &Number) {
  auto [End, Code] =
      std::from_chars(Text.data(), Text.data() + Text.size(), Number);
  return Code == std::errc() && End == Text.data() + Text.size();
}

static int openProcess(pid_t Process) {
  return static_cast<int>(::syscall(SYS_pidfd_open, Process, 0));
}

/// Removes a folder of FIFOs. Ignores errors, because no process is left that
/// could handle them.
static void removeFolder(const char *Path) {
  if (DIR *Folder = ::opendir(Path)) {
    while (const dirent *Entry = ::readdir(Folder))
      ::unlinkat(::dirfd(Folder), Entry->d_name, 0);
    ::closedir(Folder);
  }
  ::rmdir(Path);
}

/// Executes the command in this process. The kernel kills this process when the
/// guard dies.
[[noreturn]] static void runCommand(pid_t Guard, char **Command) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == Guard) {
    ::execvp(Command[0], Command);
    fail(Command[0], errno);
  }
  ::_exit(CannotRun);
}

/// Waits until one of the processes has ended. Returns false if the time limit
/// passes first.
static bool waitForEither(pollfd (&Processes)[2], long Milliseconds) {
  const auto End = Clock::now() + std::chrono::milliseconds(Milliseconds);
  while (true) {
    int Left = -1;
    if (Milliseconds >= 0) {
      auto Rest =
          std::chrono::ceil<std::chrono::milliseconds>(End - Clock::now());
      Left = static_cast<int>(std::clamp<long>(Rest.count(), 0, INT_MAX));
    }
    const int Ready = ::poll(Processes, 2, Left);
    if (Ready > 0)
      return true;
    if (Ready == 0 && Left < INT_MAX)
      return false;
    if (Ready < 0 && errno != EINTR)
      return false;
  }
}

/// Ends this process with the command's status or signal.
static int endAs(int Status) {
  if (WIFEXITED(Status))
    return WEXITSTATUS(Status);
  // Do not dump core again, because the command has already done so if core
  // dumps are enabled.
  const rlimit NoCore = {};
  ::setrlimit(RLIMIT_CORE, &NoCore);
  const int Signal = WTERMSIG(Status);
  std::signal(Signal, SIG_DFL);
  ::raise(Signal);
  return 128 + Signal;
}

int main(int Count, char **Arguments) {
  long Host = 0;
  long Milliseconds = 0;
  if (Count < 5 || !parse(Arguments[1], Host) ||
      !parse(Arguments[2], Milliseconds)) {
    std::fputs("usage: mlbridge-guard HOST MILLISECONDS FOLDER COMMAND...\n",
               stderr);
    return BadUsage;
  }
  const char *Folder = Arguments[3];
  const pid_t Guard = ::getpid();
  if (::getpgrp() != Guard) {
    std::fputs(
        "mlbridge-guard: not the leader of its process group, so it would "
        "kill other processes\n",
        stderr);
    return BadUsage;
  }

  pollfd Processes[2] = {};
  Processes[0].fd = openProcess(static_cast<pid_t>(Host));
  const int OpenError = errno;
  // If HOST is not the parent, HOST has already exited, and another process may
  // have its ID.
  if (::getppid() != Host) {
    removeFolder(Folder);
    return CannotRun;
  }
  if (Processes[0].fd < 0)
    return fail("pidfd_open", OpenError);
  ::fcntl(Processes[0].fd, F_SETFD, FD_CLOEXEC);

  const pid_t Child = ::fork();
  if (Child < 0)
    return fail("fork", errno);
  if (Child == 0)
    runCommand(Guard, Arguments + 4);
  Processes[1].fd = openProcess(Child);
  for (pollfd &Process : Processes)
    Process.events = POLLIN;

  const bool Ended = Processes[1].fd >= 0 &&
                     waitForEither(Processes, Milliseconds) &&
                     Processes[1].revents != 0;
  removeFolder(Folder);
  // If the time is over or HOST has exited, kill the process group. The group
  // may contain processes that the command has left running.
  if (!Ended || Processes[0].revents != 0)
    ::kill(0, SIGKILL);
  int Status = 0;
  while (::waitpid(Child, &Status, 0) < 0 && errno == EINTR) {
  }
  return endAs(Status);
}
