//===- ClientSupport.h - What the benchmarks' clients share -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The command lines of the clients, and how they end when something is wrong:
/// with a sentence on stderr, and status 1.
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

/// The value, or the end.
template <typename T> T orFail(Expected<T> Result) {
  if (!Result)
    fail(Result.takeError().str());
  return std::move(*Result);
}

/// Reads "500,1000,1500".
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

/// The first \p Count float32s of a file.
inline std::vector<float> readFloats(const char *Path, std::size_t Count) {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> File(std::fopen(Path, "rb"),
                                                        std::fclose);
  std::vector<float> Floats(Count);
  if (!File ||
      std::fread(Floats.data(), sizeof(float), Count, File.get()) != Count)
    fail("cannot read " + std::to_string(Count) + " numbers from " + Path);
  return Floats;
}

/// Keeps this process on one core.
inline void runOn(std::size_t Core) {
  cpu_set_t Cores;
  CPU_ZERO(&Cores);
  CPU_SET(Core, &Cores);
  if (sched_setaffinity(0, sizeof(Cores), &Cores) != 0)
    fail("cannot run on core " + std::to_string(Core));
}

} // namespace MLBridge::bench

#endif // MLCOMPILERBRIDGE_BENCHMARKS_CLIENTSUPPORT_H
