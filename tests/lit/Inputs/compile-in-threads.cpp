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
/// file at -Oz with the plug-in: by THREADS threads at a time, each with an
/// LLVMContext of its own, as a compiler that is a library does; then again one
/// after another. OPTIONs are LLVM's and the plug-in's. It fails where the two
/// object files of a file differ, and prints to stdout what it did:
/// \code
///   8 threads compiled 8 files, 0 of them otherwise than one thread alone
/// \endcode
///
//===----------------------------------------------------------------------===//

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#if __has_include("llvm/Plugins/PassPlugin.h")
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif

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

void optimize(Module &M, TargetMachine &Machine, const PassPlugin &Plugin) {
  LoopAnalysisManager LAM;
  FunctionAnalysisManager FAM;
  CGSCCAnalysisManager CGAM;
  ModuleAnalysisManager MAM;
  PassBuilder PB(&Machine);
  Plugin.registerPassBuilderCallbacks(PB);
  PB.registerModuleAnalyses(MAM);
  PB.registerCGSCCAnalyses(CGAM);
  PB.registerFunctionAnalyses(FAM);
  PB.registerLoopAnalyses(LAM);
  PB.crossRegisterProxies(LAM, FAM, CGAM, MAM);
  PB.buildPerModuleDefaultPipeline(OptimizationLevel::Oz).run(M, MAM);
}

/// The object file of a bitcode file.
std::string compile(StringRef File, const PassPlugin &Plugin) {
  LLVMContext Context;
  SMDiagnostic Diagnostic;
  std::unique_ptr<Module> M = parseIRFile(File, Diagnostic, Context);
  if (!M)
    fail(File + ": " + Diagnostic.getMessage());
  std::string Why;
  const Target *T = TargetRegistry::lookupTarget(M->getTargetTriple(), Why);
  if (!T)
    fail(File + ": " + Why);
  std::unique_ptr<TargetMachine> Machine(T->createTargetMachine(
      M->getTargetTriple(), /*CPU=*/"", /*Features=*/"", TargetOptions(),
      Reloc::PIC_, std::nullopt, CodeGenOptLevel::Default));
  optimize(*M, *Machine, Plugin);

  SmallString<0> Object;
  raw_svector_ostream Out(Object);
  legacy::PassManager Emit;
  if (Machine->addPassesToEmitFile(Emit, Out, nullptr,
                                   CodeGenFileType::ObjectFile))
    fail(File + ": its target emits no object files");
  Emit.run(*M);
  return std::string(Object);
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

  // The threads come first, so that it is they who load the model.
  std::vector<std::string> Together(Files.size());
  std::atomic<std::size_t> Next = 0;
  std::atomic<unsigned> Waiting = NumThreads;
  std::vector<std::thread> Threads;
  for (unsigned T = 0; T < NumThreads; ++T)
    Threads.emplace_back([&] {
      // All of them at the same moment.
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
      errs() << Files[F] << ": another object file\n";
      ++NumDifferent;
    }
  outs() << NumThreads << " threads compiled " << Files.size() << " files, "
         << NumDifferent << " of them otherwise than one thread alone\n";
  return NumDifferent == 0 ? 0 : 1;
}
