//===- CompileClient.cpp - Compiles modules in threads --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The compiler of `mlbridge bench threads`. It runs LLVM's -Oz pipeline and
/// code generator on clang's bitcode, like a build server or a JIT:
///
///     compile-client THREADS FOLDER PLUGIN SPEC FILE...
///
/// THREADS threads compile the modules and write the object files to FOLDER.
/// Each module has its own LLVM context. The plug-in PLUGIN is loaded once.
/// SPEC is the model of the plug-in's inliner. If SPEC is empty, LLVM's own
/// heuristic decides. Any failure, including a failure of the model, ends the
/// process with status 1.
///
//===----------------------------------------------------------------------===//

#include "CompileModule.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"

#include <atomic>
#include <thread>
#include <vector>

using namespace llvm;

[[noreturn]] static void fail(const Twine &Why) {
  errs() << "compile-client: " << Why << "\n";
  std::exit(1);
}

static void compile(StringRef File, StringRef Folder,
                    const PassPlugin &Plugin) {
  Expected<std::string> Object = MLBridge::compileModule(File, Plugin);
  if (!Object)
    fail(toString(Object.takeError()));
  SmallString<128> Output(Folder);
  sys::path::append(Output, sys::path::stem(File) + ".o");
  std::error_code Problem;
  raw_fd_ostream Out(Output, Problem);
  if (Problem)
    fail(Output + ": " + Problem.message());
  Out << *Object;
}

int main(int NumArguments, char **Arguments) {
  unsigned NumThreads = 0;
  if (NumArguments < 6 || !to_integer(Arguments[1], NumThreads) ||
      NumThreads == 0)
    fail("usage: compile-client THREADS FOLDER PLUGIN SPEC FILE...");
  const std::vector<const char *> Files(Arguments + 5,
                                        Arguments + NumArguments);
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();

  Expected<PassPlugin> Plugin = PassPlugin::Load(Arguments[3]);
  if (!Plugin)
    fail(toString(Plugin.takeError()));
  std::vector<const char *> Options{Arguments[0], "-mlbridge-on-error=fatal"};
  const std::string Inliner = std::string("-mlbridge-inliner=") + Arguments[4];
  if (*Arguments[4])
    Options.push_back(Inliner.c_str());
  cl::ParseCommandLineOptions(static_cast<int>(Options.size()), Options.data());

  std::atomic<std::size_t> Next = 0;
  std::vector<std::jthread> Threads;
  Threads.reserve(NumThreads);
  for (unsigned I = 0; I < NumThreads; ++I)
    Threads.emplace_back([&] {
      for (std::size_t Mine = Next++; Mine < Files.size(); Mine = Next++)
        compile(Files[Mine], Arguments[2], *Plugin);
    });
}
