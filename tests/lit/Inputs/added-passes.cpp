//===- added-passes.cpp - Another plug-in ---------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A plug-in that adds a pass at each kind of extension point. Each pass prints
/// once where it ran. The last pass also runs a pass of LLVM.
///
//===----------------------------------------------------------------------===//

#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#if __has_include("llvm/Plugins/PassPlugin.h")
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace llvm;

namespace {

/// Runs on any IR and changes nothing.
class AddedPass : public PassInfoMixin<AddedPass> {
public:
  explicit AddedPass(StringRef Where) : Where(Where) {}
  template <typename UnitT, typename ManagerT, typename... RestT>
  PreservedAnalyses run(UnitT &, ManagerT &, RestT &&...) {
    if (!std::exchange(HasRun, true))
      errs() << "added: " << Where << "\n";
    return PreservedAnalyses::all();
  }

private:
  StringRef Where;
  bool HasRun = false;
};

/// Adds an attribute to each function and simplifies the function.
class LastPass : public PassInfoMixin<LastPass> {
public:
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM) {
    errs() << "added: last\n";
    for (Function &F : M)
      F.addFnAttr("added-last");
    ModulePassManager Passes;
    Passes.addPass(createModuleToFunctionPassAdaptor(SimplifyCFGPass()));
    return Passes.run(M, MAM);
  }
};

template <typename ManagerT> auto adds(StringRef Where) {
  return
      [Where](ManagerT &Passes, auto...) { Passes.addPass(AddedPass(Where)); };
}

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo llvmGetPassPluginInfo() {
  PassPluginLibraryInfo Info{};
  Info.APIVersion = LLVM_PLUGIN_API_VERSION;
  Info.PluginName = "AddedPasses";
  Info.PluginVersion = "1";
  Info.RegisterPassBuilderCallbacks = [](PassBuilder &PB) {
    PB.registerPipelineEarlySimplificationEPCallback(
        adds<ModulePassManager>("early"));
    PB.registerPeepholeEPCallback(adds<FunctionPassManager>("peephole"));
    PB.registerLateLoopOptimizationsEPCallback(adds<LoopPassManager>("loop"));
    PB.registerCGSCCOptimizerLateEPCallback(adds<CGSCCPassManager>("cgscc"));
    PB.registerVectorizerStartEPCallback(
        adds<FunctionPassManager>("vectorizer"));
    PB.registerOptimizerLastEPCallback(
        [](ModulePassManager &Passes, auto...) { Passes.addPass(LastPass()); });
  };
  return Info;
}
