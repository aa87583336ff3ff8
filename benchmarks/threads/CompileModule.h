//===- CompileModule.h - LLVM's -Oz as a function ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// compileModule() compiles clang's bitcode to an object file, with -Oz and the
/// plug-in. It is thread-safe, because each call has its own LLVMContext.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_BENCHMARKS_COMPILEMODULE_H
#define MLBRIDGE_BENCHMARKS_COMPILEMODULE_H

#include "llvm/ADT/SmallString.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#if __has_include("llvm/Plugins/PassPlugin.h")
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif

#include <memory>
#include <string>

namespace MLBridge {

inline void optimize(llvm::Module &M, llvm::TargetMachine &Machine,
                     const llvm::PassPlugin &Plugin) {
  llvm::LoopAnalysisManager LAM;
  llvm::FunctionAnalysisManager FAM;
  llvm::CGSCCAnalysisManager CGAM;
  llvm::ModuleAnalysisManager MAM;
  llvm::PassBuilder Builder(&Machine);
  Plugin.registerPassBuilderCallbacks(Builder);
  Builder.registerModuleAnalyses(MAM);
  Builder.registerCGSCCAnalyses(CGAM);
  Builder.registerFunctionAnalyses(FAM);
  Builder.registerLoopAnalyses(LAM);
  Builder.crossRegisterProxies(LAM, FAM, CGAM, MAM);
  Builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::Oz)
      .run(M, MAM);
}

/// Compiles a bitcode file. Returns the bytes of an object file for the
/// module's target.
inline llvm::Expected<std::string>
compileModule(llvm::StringRef File, const llvm::PassPlugin &Plugin) {
  auto Fail = [&](const llvm::Twine &Why) {
    return llvm::createStringError(File + ": " + Why);
  };
  llvm::LLVMContext Context;
  llvm::SMDiagnostic Problem;
  std::unique_ptr<llvm::Module> M = llvm::parseIRFile(File, Problem, Context);
  if (!M)
    return Fail(Problem.getMessage());
  std::string Why;
  const llvm::Target *Found =
      llvm::TargetRegistry::lookupTarget(M->getTargetTriple(), Why);
  if (!Found)
    return Fail(Why);
  // Pass no CPU, because the CPU is an attribute of each function.
  const std::unique_ptr<llvm::TargetMachine> Machine(Found->createTargetMachine(
      M->getTargetTriple(), /*CPU=*/"",
      /*Features=*/"", llvm::TargetOptions(), llvm::Reloc::PIC_));
  M->setDataLayout(Machine->createDataLayout());
  optimize(*M, *Machine, Plugin);

  llvm::SmallString<0> Object;
  llvm::raw_svector_ostream Out(Object);
  llvm::legacy::PassManager Emit;
  if (Machine->addPassesToEmitFile(Emit, Out, /*DwoOut=*/nullptr,
                                   llvm::CodeGenFileType::ObjectFile))
    return Fail("the target writes no object files");
  Emit.run(*M);
  return std::string(Object);
}

} // namespace MLBridge

#endif // MLBRIDGE_BENCHMARKS_COMPILEMODULE_H
