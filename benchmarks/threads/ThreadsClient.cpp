//===- ThreadsClient.cpp - Threads that share one model -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Sends the requests of `mlbridge bench threads` without a compiler:
///
///     threads-client SPEC THREADS NAMES
///
/// Each of THREADS threads has a runner for SPEC. Copies of one factory create
/// the runners, so that all threads share one model. Like a request of LLVM's
/// inliner, each request has one int64[1] feature for each line of the file
/// NAMES. The reply is an int64. The client prints "ready" when each thread has
/// received its first reply. Then it reads numbers of seconds from stdin. For
/// each number, all threads send requests for that time, and the client prints
/// a line of JSON with the number of decisions, the CPU time, and the memory of
/// this process. It exits at the end of stdin.
///
//===----------------------------------------------------------------------===//

#include "ClientSupport.h"

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#ifdef MLBRIDGE_HAS_ONNX
#include "MLCompilerBridge/Runners/ONNXModelRunner.h"
#endif
#ifdef MLBRIDGE_HAS_TF
#include "MLCompilerBridge/Runners/TFModelRunner.h"
#endif

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <iostream>
#include <thread>

using namespace MLBridge;
using namespace MLBridge::bench;
using Clock = std::chrono::steady_clock;

namespace {

/// The state shared by all threads.
struct Round {
  explicit Round(std::ptrdiff_t Threads) : Gate(Threads + 1) {}

  /// All threads wait here at the start and at the end of a round.
  std::barrier<> Gate;
  std::atomic<bool> IsOver = false;
  std::atomic<bool> IsLast = false;
  std::atomic<std::uint64_t> Decisions = 0;
};

/// The compiler of one thread. Like an LLVM pass, it writes the features before
/// each request.
class Compiler {
public:
  Compiler(const RunnerFactory &Factory, std::string_view Spec,
           const std::vector<std::string> &Names)
      : Runner(orFail(Factory.create(Spec))), Values(Names.size()) {
    for (std::size_t I = 0; I < Names.size(); ++I)
      Features.set(Names[I], Span<const std::int64_t>(&Values[I], 1));
  }

  void ask() {
    for (std::int64_t &Value : Values)
      Value = ++Number % 64;
    const Advice Reply =
        orFail(Runner->ask(Features, AdviceSpec::of<std::int64_t>()));
    (void)orFail(Runner->convert<std::int64_t>(Reply));
  }

private:
  std::unique_ptr<MLModelRunner> Runner;
  std::vector<std::int64_t> Values;
  FeatureSet Features;
  std::int64_t Number = 0;
};

} // namespace

static void work(Compiler &Asking, Round &Shared) {
  while (true) {
    Shared.Gate.arrive_and_wait();
    if (Shared.IsLast)
      return;
    std::uint64_t Decisions = 0;
    for (; !Shared.IsOver.load(std::memory_order_relaxed); ++Decisions)
      Asking.ask();
    Shared.Decisions += Decisions;
    Shared.Gate.arrive_and_wait();
  }
}

/// Returns the CPU time of all threads of this process, in seconds.
static double cpuSeconds() {
  timespec Time{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &Time) != 0)
    fail("cannot read the process's clock");
  return static_cast<double>(Time.tv_sec) +
         1e-9 * static_cast<double>(Time.tv_nsec);
}

/// Returns the proportional set size of this process, in KiB.
static std::uint64_t memoryKiB() {
  std::ifstream File("/proc/self/smaps_rollup");
  for (std::string Word; File >> Word;)
    if (Word == "Pss:") {
      std::uint64_t KiB = 0;
      File >> KiB;
      return KiB;
    }
  fail("cannot read /proc/self/smaps_rollup");
}

static std::vector<std::string> readLines(const char *Path) {
  std::ifstream File(Path);
  std::vector<std::string> Lines;
  for (std::string Line; std::getline(File, Line);)
    Lines.push_back(Line);
  if (Lines.empty())
    fail("cannot read names from " + std::string(Path));
  return Lines;
}

int main(int NumArguments, char **Arguments) {
  if (NumArguments != 4)
    fail("usage: threads-client SPEC THREADS NAMES");
  const std::size_t NumThreads = parseNumbers(Arguments[2]).front();
  if (NumThreads == 0)
    fail("THREADS is at least 1");
  const std::vector<std::string> Names = readLines(Arguments[3]);
  RunnerFactory Factory;
#ifdef MLBRIDGE_HAS_ONNX
  addONNX(Factory);
#endif
#ifdef MLBRIDGE_HAS_TF
  addTF(Factory);
#endif

  Round Shared(static_cast<std::ptrdiff_t>(NumThreads));
  std::vector<std::jthread> Threads;
  Threads.reserve(NumThreads);
  for (std::size_t I = 0; I < NumThreads; ++I)
    Threads.emplace_back([&Shared, &Names, Factory, Spec = Arguments[1]] {
      Compiler Asking(Factory, Spec, Names);
      Asking.ask();
      Shared.Gate.arrive_and_wait();
      work(Asking, Shared);
    });
  Shared.Gate.arrive_and_wait();
  std::printf("ready\n");
  std::fflush(stdout);

  for (std::string Line; std::getline(std::cin, Line);) {
    Shared.IsOver = false;
    Shared.Decisions = 0;
    const double CPUStart = cpuSeconds();
    const Clock::time_point Start = Clock::now();
    Shared.Gate.arrive_and_wait();
    std::this_thread::sleep_until(
        Start +
        std::chrono::duration<double>(std::strtod(Line.c_str(), nullptr)));
    Shared.IsOver = true;
    Shared.Gate.arrive_and_wait();
    const std::chrono::duration<double> Took = Clock::now() - Start;
    std::printf("{\"decisions\":%llu,\"seconds\":%.6f,\"cpu_seconds\":%.6f,"
                "\"memory_kib\":%llu}\n",
                static_cast<unsigned long long>(Shared.Decisions.load()),
                Took.count(), cpuSeconds() - CPUStart,
                static_cast<unsigned long long>(memoryKiB()));
    std::fflush(stdout);
  }
  Shared.IsLast = true;
  Shared.Gate.arrive_and_wait();
}
