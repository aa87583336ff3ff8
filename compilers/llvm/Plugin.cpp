//===- Plugin.cpp - The plug-in's entry point ----------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the function that LLVM's tools call when they load MLBridgeLLVM.so.
/// Each optimisation has a folder and a registration function. An optimisation
/// does nothing unless its option is given. With this plug-in and no options,
/// the compiler therefore behaves like the stock compiler.
/// \code
///   clang -fpass-plugin=X.so -mllvm -mlbridge-inliner=SPEC
///   opt -load-pass-plugin=X.so -mlbridge-inliner=SPEC -passes='default<Oz>'
///   llc -load-pass-plugin=X.so
///   ld.lld -mllvm -load=X.so --load-pass-plugin=X.so
///          -mllvm -mlbridge-inliner=SPEC
/// \endcode
///
//===----------------------------------------------------------------------===//

#include "IR2Vec/IR2VecPrinter.h"
#include "Inliner/Inliner.h"
#include "LoopDistribution/LoopDistributionPass.h"
#include "PhaseOrdering/EnvironmentPass.h"
#include "PhaseOrdering/PhaseOrderingPass.h"
#include "RegAlloc/AllocationEnvironment.h"
#include "Size/SizeDecider.h"
#include "Size/SizeEnvironment.h"
#include "Size/SizeGuard.h"
#include "Size/SizeSearchPass.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Passes/PassBuilder.h"
#if __has_include("llvm/Plugins/PassPlugin.h")
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif

/// Registers the optimisations that also run inside an episode of phase
/// ordering.
static void registerInside(llvm::PassBuilder &Inner, llvm::Module &M,
                           llvm::ModuleAnalysisManager &Outer) {
  MLBridge::registerInlinerInside(Inner, M, Outer);
  MLBridge::registerLoopDistribution(Inner);
}

/// True if a previous call had the same \p PB. The plug-in can be given twice,
/// for example by a configuration file and by the user. Without this check, the
/// passes would then run twice.
static bool isRegistered(llvm::PassBuilder &PB) {
  // Store the state in PB as a pass name, because a later PassBuilder can have
  // the address of a deleted one.
  static constexpr llvm::StringLiteral Mark("mlbridge-registered");
  llvm::ModulePassManager Passes;
  llvm::Error Unknown = PB.parsePassPipeline(Passes, Mark);
  if (!Unknown)
    return true;
  llvm::consumeError(std::move(Unknown));
  PB.registerPipelineParsingCallback(
      [](llvm::StringRef Name, llvm::ModulePassManager &,
         llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) {
        return Name == Mark;
      });
  return false;
}

extern "C" LLVM_ATTRIBUTE_WEAK llvm::PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  llvm::PassPluginLibraryInfo Info{};
  Info.APIVersion = LLVM_PLUGIN_API_VERSION;
  Info.PluginName = "MLBridgeLLVM";
  Info.PluginVersion = MLBRIDGE_VERSION;
  Info.RegisterPassBuilderCallbacks = [](llvm::PassBuilder &PB) {
    if (isRegistered(PB))
      return;
    if (MLBridge::isSizeGuarded()) {
      MLBridge::registerSizeGuard(PB, registerInside);
    } else {
      MLBridge::registerInliner(PB);
      MLBridge::registerPhaseOrdering(PB, registerInside);
      MLBridge::registerSizeDecider(PB, registerInside);
    }
    MLBridge::registerIR2Vec(PB);
    MLBridge::registerLoopDistribution(PB);
    MLBridge::registerAllocationEnvironment(PB);
    MLBridge::registerPhaseOrderingPass(PB, registerInside);
    MLBridge::registerPhaseOrderingEnvironment(PB, registerInside);
    MLBridge::registerSizeSearch(PB);
    MLBridge::registerSizeEnvironment(PB);
  };
  return Info;
}
