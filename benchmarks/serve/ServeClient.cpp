//===- ServeClient.cpp - Sends requests without a pause -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A compiler of `mlbridge bench serve`:
///
///     serve-client SPEC FLOATS
///
/// The client sends one request of FLOATS float32s and prints "ready". Then it
/// reads numbers of seconds from stdin. For each number, it sends requests
/// without a pause for that time and prints the result as a line of JSON to
/// stdout. It exits at the end of stdin.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/MLModelRunner.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

using namespace MLBridge;

[[noreturn]] static void fail(const std::string &Why) {
  std::fprintf(stderr, "serve-client: %s\n", Why.c_str());
  std::exit(1);
}

/// Sends a request and checks that the reply is the first feature.
static void ask(MLModelRunner &Runner, Span<const float> Features) {
  Runner.populateFeatures(std::pair{"x", Features});
  Expected<float> Reply = Runner.tryEvaluate<float>();
  if (!Reply)
    fail(Reply.takeError().str());
  if (*Reply != Features.front())
    fail("expected the reply " + std::to_string(Features.front()) + ", found " +
         std::to_string(*Reply));
}

int main(int NumArguments, char **Arguments) {
  if (NumArguments != 3)
    fail("usage: serve-client SPEC FLOATS");
  Expected<std::unique_ptr<MLModelRunner>> Runner =
      createModelRunner(Arguments[1]);
  if (!Runner)
    fail(Runner.takeError().str());
  const unsigned long NumFloats = std::strtoul(Arguments[2], nullptr, 10);
  if (NumFloats == 0)
    fail("FLOATS is the number of features, at least 1");
  std::vector<float> Features(NumFloats);
  float Number = 0;
  ask(**Runner, Features);
  std::printf("ready\n");
  std::fflush(stdout);

  for (std::string Line; std::getline(std::cin, Line);) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point Start = Clock::now();
    const std::chrono::duration<double> Wanted(
        std::strtod(Line.c_str(), nullptr));
    unsigned long Requests = 0;
    std::chrono::duration<double> Took{};
    do {
      Features.front() = ++Number;
      ask(**Runner, Features);
      ++Requests;
      Took = Clock::now() - Start;
    } while (Took < Wanted);
    std::printf("{\"requests\":%lu,\"seconds\":%.6f}\n", Requests,
                Took.count());
    std::fflush(stdout);
  }
}
