//===- CompileClient.cpp - Compiles modules in threads --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The compiler of `mlbridge bench threads`: LLVM's -Oz and code generator for
/// bitcode that clang has made, as a build server or a JIT would run them.
///
///     compile-client THREADS FOLDER PLUGIN SPEC FILE...
///
/// So many threads take one module after another, each in a context of its own,
/// and leave the object files in FOLDER. The plug-in is loaded once; SPEC is
/// what its inliner asks, or empty for LLVM's own heuristic. A model that fails
/// ends the process with status 1, as everything else does that goes wrong.
///
//===----------------------------------------------------------------------===//

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#if __has_include("llvm/Plugins/PassPlugin.h")
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <atomic>
#include <thread>
#include <vector>

using namespace llvm;

[[noreturn]] static void fail(const Twine &Why) {
  errs() << "compile-client: " << Why << "\n";
  std::exit(1);
}

static std::unique_ptr<TargetMachine> createTarget(const Module &M) {
  std::string Problem;
  const Target *Found =
      TargetRegistry::lookupTarget(M.getTargetTriple(), Problem);
  if (!Found)
    fail(Problem);
  // The CPU is an attribute of each function.
  return std::unique_ptr<TargetMachine>(Found->createTargetMachine(
      M.getTargetTriple(), /*CPU=*/"", /*Features=*/"", TargetOptions(),
      Reloc::PIC_));
}

static void optimize(Module &M, TargetMachine &Machine, PassPlugin &Plugin) {
  LoopAnalysisManager LAM;
  FunctionAnalysisManager FAM;
  CGSCCAnalysisManager CGAM;
  ModuleAnalysisManager MAM;
  PassBuilder Builder(&Machine);
  Plugin.registerPassBuilderCallbacks(Builder);
  Builder.registerModuleAnalyses(MAM);
  Builder.registerCGSCCAnalyses(CGAM);
  Builder.registerFunctionAnalyses(FAM);
  Builder.registerLoopAnalyses(LAM);
  Builder.crossRegisterProxies(LAM, FAM, CGAM, MAM);
  Builder.buildPerModuleDefaultPipeline(OptimizationLevel::Oz).run(M, MAM);
}

static void generateCode(Module &M, TargetMachine &Machine, StringRef Output) {
  std::error_code Problem;
  raw_fd_ostream Out(Output, Problem);
  if (Problem)
    fail(Output + ": " + Problem.message());
  legacy::PassManager Passes;
  if (Machine.addPassesToEmitFile(Passes, Out, /*DwoOut=*/nullptr,
                                  CodeGenFileType::ObjectFile))
    fail("the target writes no object files");
  Passes.run(M);
}

static void compile(const char *File, StringRef Folder, PassPlugin &Plugin) {
  LLVMContext Context;
  SMDiagnostic Problem;
  std::unique_ptr<Module> M = parseIRFile(File, Problem, Context);
  if (!M)
    fail(Twine(File) + ": " + Problem.getMessage());
  std::unique_ptr<TargetMachine> Machine = createTarget(*M);
  M->setDataLayout(Machine->createDataLayout());
  optimize(*M, *Machine, Plugin);
  SmallString<128> Output(Folder);
  sys::path::append(Output, sys::path::stem(File) + ".o");
  generateCode(*M, *Machine, Output);
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
