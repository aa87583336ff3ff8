//===- AllocationEnvironmentPass.cpp - Lets a trainer allocate ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Generates code for the modules of a folder until the trainer leaves.
///
//===----------------------------------------------------------------------===//

#include "MachineCode/MachineCode.h"
#include "RegAlloc/AllocationEnvironment.h"
#include "RegAlloc/RegAllocOptions.h"
#include "Support/Options.h"
#include "Support/ReadFile.h"
#include "Support/RegisterModulePass.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"

#include <random>

using namespace llvm;

namespace MLBridge {

static thread_local std::shared_ptr<AllocationDriver> Current;

std::shared_ptr<AllocationDriver> trainingDriver() { return Current; }

/// Returns the bitcode files of \p Folder in alphabetical order.
static Expected<std::vector<std::string>> filesIn(StringRef Folder) {
  if (Folder.empty())
    return Error(ErrorCode::InvalidArgument,
                 "no functions; use -mlbridge-regalloc-functions=FOLDER");
  std::vector<std::string> Files;
  std::error_code Failure;
  for (sys::fs::directory_iterator I(Folder, Failure), E; I != E && !Failure;
       I.increment(Failure))
    if (StringRef(I->path()).ends_with(".bc"))
      Files.push_back(I->path());
  if (Failure)
    return Error(ErrorCode::System, (Folder + ": " + Failure.message()).str());
  if (Files.empty())
    return Error(ErrorCode::InvalidArgument,
                 (Folder + ": expected bitcode files, found none").str());
  llvm::sort(Files);
  return Files;
}

/// Generates and discards code for \p File. A trial's process ends here.
static Error generate(StringRef File, AllocationEnvironment &Environment) {
  constexpr std::uint64_t MaxBytes = std::uint64_t(1) << 28;
  Expected<std::unique_ptr<MemoryBuffer>> Buffer = readFile(File, MaxBytes);
  if (!Buffer)
    return Error(Buffer.code(),
                 (File + ": " + Buffer.takeError().message()).str());
  LLVMContext Context;
  auto M = parseBitcodeFile((*Buffer)->getMemBufferRef(), Context);
  if (!M)
    return {ErrorCode::Malformed,
            (File + ": " + toString(M.takeError())).str()};
  Expected<ObjectCode> Object = emitObject(**M, Environment.needsObject());
  if (!Object)
    return Object.takeError();
  Environment.finishModule(**M, *Object);
  return Error::success();
}

static Error serve() {
  Expected<std::string> Spec = environmentSpec();
  if (!Spec)
    return Spec.takeError();
  Expected<std::vector<std::string>> Files = filesIn(allocationFunctions());
  if (!Files)
    return Files.takeError();
  if (allocationMeasure() == AllocationMeasure::Cycles)
    if (Error E = mapFrequencies())
      return E;
  SteppedEnvironment Trainer;
  if (Error E = Trainer.serve(*Spec))
    return E;
  auto Environment = std::make_shared<AllocationEnvironment>(
      AllocationEnvironment::Settings{
          givenPolicy().Form, allocationRepeats(), allocationMaxRanges(),
          allocationVocabulary().str(), allocationMeasure()},
      Trainer);
  Current = Environment;
  std::mt19937_64 Generator(randomPolicyOptions().Seed);
  Error Failure;
  while (Environment->hasTrainer() && !Failure) {
    std::shuffle(Files->begin(), Files->end(), Generator);
    for (const std::string &File : *Files) {
      Failure = generate(File, *Environment);
      if (Failure || !Environment->hasTrainer())
        break;
    }
  }
  Current.reset();
  if (Failure)
    Trainer.stop(Failure);
  return Failure ? Failure : Trainer.result();
}

namespace {

class AllocationEnvironmentPass
    : public PassInfoMixin<AllocationEnvironmentPass> {
public:
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    if (Error E = serve())
      M.getContext().emitError("mlbridge-regalloc-environment: " + E.str());
    return PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

} // namespace

void registerAllocationEnvironment(PassBuilder &PB) {
  registerModulePass(PB, "mlbridge-regalloc-environment",
                     AllocationEnvironmentPass());
}

} // namespace MLBridge
