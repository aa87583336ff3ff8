//===- compile-in-threads.cpp - Many compilers in one process -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `compile-in-threads PLUGIN THREADS FILE.bc... -- OPTION...` compiles each
/// file at -Oz with the plug-in, twice. First it uses THREADS concurrent
/// threads, each with its own LLVMContext, like a compiler that is used as a
/// library. Then it compiles the files again, one after another. The OPTIONs
/// are options of LLVM and of the plug-in. The program fails if the two object
/// files of a file differ. It prints to stdout:
/// \code
///   8 threads compiled 8 files, 0 of them differently from one thread
/// \endcode
///
//===----------------------------------------------------------------------===//

#include "threads/CompileModule.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

using namespace llvm;

namespace {

[[noreturn]] void fail(const Twine &Why) {
  errs() << "compile-in-threads: " << Why << "\n";
  std::exit(2);
}

std::string compile(StringRef File, const PassPlugin &Plugin) {
  Expected<std::string> Object = MLBridge::compileModule(File, Plugin);
  if (!Object)
    fail(toString(Object.takeError()));
  return std::move(*Object);
}

} // namespace

int main(int argc, char **argv) {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  std::vector<std::string> Files;
  int I = 3;
  for (; I < argc && StringRef(argv[I]) != "--"; ++I)
    Files.emplace_back(argv[I]);
  unsigned NumThreads = 0;
  if (Files.empty() || StringRef(argv[2]).getAsInteger(10, NumThreads) ||
      NumThreads == 0)
    fail("expected PLUGIN THREADS FILE.bc... -- OPTION...");

  Expected<PassPlugin> Plugin = PassPlugin::Load(argv[1]);
  if (!Plugin)
    fail(toString(Plugin.takeError()));
  std::vector<const char *> Options = {argv[0]};
  Options.insert(Options.end(), argv + std::min(I + 1, argc), argv + argc);
  cl::ParseCommandLineOptions(static_cast<int>(Options.size()), Options.data());

  // The threads come first, so that they load the model.
  std::vector<std::string> Together(Files.size());
  std::atomic<std::size_t> Next = 0;
  std::atomic<unsigned> Waiting = NumThreads;
  std::vector<std::thread> Threads;
  for (unsigned T = 0; T < NumThreads; ++T)
    Threads.emplace_back([&] {
      // Start all threads at once.
      for (--Waiting; Waiting != 0;)
        std::this_thread::yield();
      for (std::size_t F = Next++; F < Files.size(); F = Next++)
        Together[F] = compile(Files[F], *Plugin);
    });
  for (std::thread &Thread : Threads)
    Thread.join();

  unsigned NumDifferent = 0;
  for (std::size_t F = 0; F < Files.size(); ++F)
    if (compile(Files[F], *Plugin) != Together[F]) {
      errs() << Files[F] << ": the object files differ\n";
      ++NumDifferent;
    }
  outs() << NumThreads << " threads compiled " << Files.size() << " files, "
         << NumDifferent << " of them differently from one thread\n";
  return NumDifferent == 0 ? 0 : 1;
}
