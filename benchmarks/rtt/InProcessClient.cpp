//===- InProcessClient.cpp - Times in-process models ----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The compiler's side of `mlbridge bench rtt` for in-process models:
///
///     inprocess-client CPU FEATURES BATCHES
///
/// The client runs on core CPU and reads commands from stdin. For each command,
/// it prints a line of JSON to stdout:
///
/// - "SCHEME LENGTH FILE" measures a model whose input is the first LENGTH
///   float32s of the file FEATURES. The result contains the times of BATCHES
///   batches of calls, both for the runner and for its floor. The floor is a
///   direct call of the same model. The runner and the floor alternate, so that
///   noise affects both.
/// - "kinds" prints the schemes of this build.
///
//===----------------------------------------------------------------------===//

#include "ClientSupport.h"
#include "InProcessFloors.h"
#include "support/AllocationCounter.h"

#include "MLCompilerBridge/Runners/InProcessModelRunner.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <sstream>

using namespace MLBridge;
using namespace MLBridge::bench;
using Clock = std::chrono::steady_clock;

/// The approximate time of a batch of the runner. It is long compared with the
/// time to read the clock. It is short compared with a time slice, so that most
/// batches are not preempted.
static constexpr std::chrono::nanoseconds BatchTime =
    std::chrono::microseconds(150);
/// The time for which the model runs before it is measured, to refill the
/// caches after other processes have used the core.
static constexpr std::chrono::nanoseconds WarmTime =
    std::chrono::milliseconds(20);

/// Returns a function that requests advice in the same way as a compiler pass.
static Ask makeRunner(const std::shared_ptr<const Model> &M,
                      Span<const float> Features) {
  auto Load = [M]() -> Expected<std::shared_ptr<const Model>> { return M; };
  auto Runner = std::make_shared<InProcessModelRunner>(
      M->name(), InProcessModelRunner::LoadMap{{"", Load}});
  return [=] {
    Runner->populateFeatures(std::pair{"x", Features});
    return Runner->evaluate<Span<const float>>();
  };
}

static std::chrono::nanoseconds timeCalls(const Ask &Asked, unsigned Calls) {
  Clock::time_point Start = Clock::now();
  for (unsigned I = 0; I < Calls; ++I)
    (void)Asked();
  return Clock::now() - Start;
}

/// Returns the time of one undisturbed call.
static std::chrono::nanoseconds timeOfOne(const Ask &Asked) {
  constexpr unsigned Calls = 10;
  std::chrono::nanoseconds Least = BatchTime;
  for (int I = 0; I < 20; ++I)
    Least = std::min(Least, timeCalls(Asked, Calls) / Calls);
  return std::max(Least, std::chrono::nanoseconds(1));
}

namespace {
/// One side of the comparison, either the runner or the floor. It holds the
/// side's function and times.
struct Side {
  explicit Side(Ask TheAsk) : Asked(std::move(TheAsk)) {}

  void timeBatch(unsigned Calls) {
    Nanoseconds.push_back(static_cast<double>(timeCalls(Asked, Calls).count()) /
                          Calls);
  }
  void print(const char *Name) const;

  Ask Asked;
  std::vector<double> Nanoseconds;
};
} // namespace

void Side::print(const char *Name) const {
  constexpr unsigned Calls = 100;
  const test::AllocationCounter Allocations;
  timeCalls(Asked, Calls);
  std::printf("\"%s\":{\"allocations\":%.2f,\"answer\":[", Name,
              static_cast<double>(Allocations.count()) / Calls);
  const char *Separator = "";
  for (float Number : Asked()) {
    std::printf("%s%.9g", Separator, static_cast<double>(Number));
    Separator = ",";
  }
  std::printf("],\"ns\":[");
  Separator = "";
  for (double Time : Nanoseconds) {
    std::printf("%s%.2f", Separator, Time);
    Separator = ",";
  }
  std::printf("]}");
}

static void measure(const std::string &Scheme, const std::string &File,
                    Span<const float> Features, std::size_t Batches) {
  const InProcessSubject Subject = openInProcess(Scheme, File, Features);
  Side Floor(Subject.Floor);
  Side Runner(makeRunner(Subject.M, Features));
  for (const Side *Each : {&Floor, &Runner})
    for (Clock::time_point Start = Clock::now();
         Clock::now() - Start < WarmTime;)
      timeCalls(Each->Asked, 1);
  const auto Calls = static_cast<unsigned>(
      std::max<std::int64_t>(BatchTime / timeOfOne(Runner.Asked), 1));
  for (std::size_t I = 0; I < Batches; ++I) {
    (I % 2 == 0 ? Floor : Runner).timeBatch(Calls);
    (I % 2 == 0 ? Runner : Floor).timeBatch(Calls);
  }
  std::printf("{\"calls\":%u,", Calls);
  Floor.print("floor");
  std::printf(",");
  Runner.print("runner");
  std::printf("}\n");
  std::fflush(stdout);
}

static void printKinds() {
  std::printf("[\"aot\""
#ifdef MLBRIDGE_HAS_ONNX
              ",\"onnx\""
#endif
#ifdef MLBRIDGE_HAS_TF
              ",\"tf\""
#endif
              "]\n");
  std::fflush(stdout);
}

int main(int NumArguments, char **Arguments) {
  if (NumArguments != 4)
    fail("usage: inprocess-client CPU FEATURES BATCHES");
  runOn(parseNumbers(Arguments[1]).front());
  const std::size_t Batches = parseNumbers(Arguments[3]).front();

  for (std::string Line; std::getline(std::cin, Line);) {
    std::istringstream Words(Line);
    std::string Scheme, File;
    std::size_t Length = 0;
    if (Line == "kinds") {
      printKinds();
      continue;
    }
    if (!(Words >> Scheme >> Length >> std::ws) || !std::getline(Words, File))
      fail("expected SCHEME LENGTH FILE, found '" + Line + "'");
    const std::vector<float> Features = readFloats(Arguments[2], Length);
    measure(Scheme, File, Features, Batches);
  }
}
