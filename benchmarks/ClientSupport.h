//===- ClientSupport.h - Code shared by the clients -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Functions for the benchmark clients. They parse command lines and report
/// failures. After a failure, a client prints a sentence to stderr and exits
/// with status 1.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_BENCHMARKS_CLIENTSUPPORT_H
#define MLCOMPILERBRIDGE_BENCHMARKS_CLIENTSUPPORT_H

#include "MLCompilerBridge/Error.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sched.h>
#include <string>
#include <string_view>
#include <vector>

namespace MLBridge::bench {

[[noreturn]] inline void fail(const std::string &Why) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, Why.c_str());
  std::exit(1);
}

/// Returns the value of \p Result. If \p Result is an error, reports it and
/// ends the process.
template <typename T> T orFail(Expected<T> Result) {
  if (!Result)
    fail(Result.takeError().str());
  return std::move(*Result);
}

/// Parses a list such as "500,1000,1500".
inline std::vector<std::size_t> parseNumbers(std::string_view Text) {
  std::vector<std::size_t> Numbers;
  const char *Next = Text.data();
  const char *End = Next + Text.size();
  while (true) {
    auto [Rest, Problem] = std::from_chars(Next, End, Numbers.emplace_back());
    if (Problem != std::errc() || (Rest != End && *Rest != ','))
      fail("expected numbers and commas, found '" + std::string(Text) + "'");
    if (Rest == End)
      return Numbers;
    Next = Rest + 1;
  }
}

/// Reads the first \p Count float32s of a file.
inline std::vector<float> readFloats(const char *Path, std::size_t Count) {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> File(std::fopen(Path, "rb"),
                                                        std::fclose);
  std::vector<float> Floats(Count);
  if (!File ||
      std::fread(Floats.data(), sizeof(float), Count, File.get()) != Count)
    fail("cannot read " + std::to_string(Count) + " numbers from " + Path);
  return Floats;
}

/// Restricts this process to one core.
inline void runOn(std::size_t Core) {
  cpu_set_t Cores;
  CPU_ZERO(&Cores);
  CPU_SET(Core, &Cores);
  if (sched_setaffinity(0, sizeof(Cores), &Cores) != 0)
    fail("cannot run on core " + std::to_string(Core));
}

} // namespace MLBridge::bench

#endif // MLCOMPILERBRIDGE_BENCHMARKS_CLIENTSUPPORT_H
