//===- Program.cpp - Compiles and runs programs ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Starts programs in a temporary folder. The program `timeout` ends a program
/// that runs too long.
///
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "Kernel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace MLBridge::polyhedral {

TemporaryFolder::TemporaryFolder()
    : Path((std::filesystem::temp_directory_path() /
            "mlbridge-polyhedral-XXXXXX")
               .string()) {
  if (!mkdtemp(Path.data()))
    throw UserError(Path + ": cannot create this folder: " +
                    std::strerror(errno)); // NOLINT(concurrency-mt-unsafe)
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code Ignored;
  std::filesystem::remove_all(Path, Ignored);
}

namespace {

// These are global, because a signal handler can reach only global variables.
std::atomic<pid_t> Command = 0;
std::atomic<int> Received = 0;

} // namespace

static void endCommand(int Signal) {
  Received = Signal;
  if (const pid_t Child = Command)
    kill(Child, SIGTERM);
}

namespace {

/// While an object exists, a signal that would end the tool ends the command
/// instead, so that the tool can remove its folder.
class Interruption {
public:
  Interruption() {
    struct sigaction Action = {};
    Action.sa_handler = endCommand;
    for (std::size_t I = 0; I < Signals.size(); ++I)
      sigaction(Signals[I], &Action, &Before[I]);
  }
  Interruption(const Interruption &) = delete;
  Interruption &operator=(const Interruption &) = delete;
  ~Interruption() {
    for (std::size_t I = 0; I < Signals.size(); ++I)
      sigaction(Signals[I], &Before[I], nullptr);
  }

private:
  static constexpr std::array<int, 3> Signals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> Before = {};
};

} // namespace

/// Starts a command with its stdout in a file. The system ends the command if
/// the tool ends. Returns -1 if the system has no more processes.
static pid_t start(const std::vector<char *> &Arguments,
                   const std::string &Output) {
  const pid_t Tool = getpid();
  const pid_t Child = fork();
  if (Child != 0)
    return Child;
  constexpr int NotFound = 127;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int File = open(Output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (getppid() == Tool && File >= 0 && dup2(File, STDOUT_FILENO) >= 0)
    execvp(Arguments[0], Arguments.data());
  _exit(NotFound);
}

/// Runs a command with its stdout in the file \p Output.
static void run(std::vector<std::string> Words, const std::string &Output,
                int Seconds) {
  const std::string What = Words.front();
  Words.insert(Words.begin(),
               {"timeout", "--kill-after=1", std::to_string(Seconds)});
  std::vector<char *> Arguments;
  Arguments.reserve(Words.size() + 1);
  for (std::string &Word : Words)
    Arguments.push_back(Word.data());
  Arguments.push_back(nullptr);
  const Interruption EndsCommand;
  const pid_t Child = start(Arguments, Output);
  int Status = 0;
  if (Child > 0) {
    Command = Child;
    // A signal may have come before the command's process number was known.
    if (Received)
      kill(Child, SIGTERM);
    while (waitpid(Child, &Status, 0) < 0 && errno == EINTR)
      ;
    Command = 0;
  }
  if (const int Signal = Received)
    throw UserError(What + ": ended by signal " + std::to_string(Signal));
  if (Child > 0 && WIFEXITED(Status) && WEXITSTATUS(Status) == 0)
    return;
  constexpr int TimedOut = 124;
  constexpr int NotFound = 127;
  throw UserError(
      What + ": " +
      (Child < 0 ? "cannot start a process"
       : WIFEXITED(Status) && WEXITSTATUS(Status) == NotFound
           ? "cannot be started; expected it and `timeout` in PATH"
       : WIFEXITED(Status) && WEXITSTATUS(Status) == TimedOut
           ? "took more than " + std::to_string(Seconds) +
                 " s; use --seconds or smaller parameters"
           : "failed with status " + std::to_string(WEXITSTATUS(Status))));
}

double medianOf(std::vector<double> Values) {
  const auto Middle =
      Values.begin() + static_cast<std::ptrdiff_t>(Values.size() / 2);
  std::ranges::nth_element(Values, Middle);
  return *Middle;
}

std::vector<Measured> runProgram(const std::string &Code, int Seconds) {
  const TemporaryFolder Folder;
  const std::string Source = Folder.file("kernel.c");
  const std::string Program = Folder.file("kernel");
  const std::string Output = Folder.file("output");
  if (!(std::ofstream(Source) << Code << std::flush))
    throw UserError(Source + ": cannot be written");
  // Forbid contraction to fused operations, which would round differently in
  // each loop.
  run({"gcc", "-O3", "-ffp-contract=off", Source, "-lm", "-o", Program}, Output,
      Seconds);
  run({Program}, Output, Seconds);
  std::vector<Measured> Found;
  std::ifstream Lines(Output);
  for (std::string Line; std::getline(Lines, Line);) {
    std::istringstream Words(Line);
    std::string Verdict;
    Words >> Verdict;
    Measured &New = Found.emplace_back();
    New.IsSame = Verdict == "same";
    for (double Time = 0; Words >> Time;)
      New.Times.push_back(Time);
  }
  return Found;
}

} // namespace MLBridge::polyhedral
