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
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>

extern char **environ; // NOLINT(readability-redundant-declaration)

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

/// Runs a command with its stdout in the file \p Output.
static void run(std::vector<std::string> Command, const std::string &Output,
                int Seconds) {
  const std::string What = Command.front();
  Command.insert(Command.begin(),
                 {"timeout", "--kill-after=1", std::to_string(Seconds)});
  std::vector<char *> Arguments;
  Arguments.reserve(Command.size() + 1);
  for (std::string &Argument : Command)
    Arguments.push_back(Argument.data());
  Arguments.push_back(nullptr);
  posix_spawn_file_actions_t Actions;
  posix_spawn_file_actions_init(&Actions);
  posix_spawn_file_actions_addopen(&Actions, STDOUT_FILENO, Output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t Child = 0;
  int Code = posix_spawnp(&Child, "timeout", &Actions, nullptr,
                          Arguments.data(), environ);
  posix_spawn_file_actions_destroy(&Actions);
  int Status = 0;
  if (Code == 0)
    while (waitpid(Child, &Status, 0) < 0 && errno == EINTR)
      ;
  if (Code == 0 && WIFEXITED(Status) && WEXITSTATUS(Status) == 0)
    return;
  constexpr int TimedOut = 124;
  throw UserError(
      What + ": " +
      (Code != 0 ? "cannot start `timeout`"
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
  std::ofstream(Source) << Code;
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
