//===- EnvironmentPass.cpp - Lets a trainer drive opt ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines and registers the pass.
///
//===----------------------------------------------------------------------===//

#include "PhaseOrdering/EnvironmentPass.h"

#include "MachineCode/MachineCode.h"
#include "PhaseOrdering/PhaseOrderingEnvironment.h"
#include "PhaseOrdering/PhaseOrderingOptions.h"
#include "Support/Options.h"
#include "Support/RegisterModulePass.h"

#include "MLCompilerBridge/Training/EnvironmentServer.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace MLBridge {
namespace {

class EnvironmentPass : public PassInfoMixin<EnvironmentPass> {
public:
  explicit EnvironmentPass(RegisterInsideOf Register) : Register(Register) {}
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM) {
    if (Error E = serve(registerInside(Register, M, MAM)))
      M.getContext().emitError("mlbridge-phase-ordering-environment: " +
                               E.str());
    return PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }

private:
  static Error serve(RegisterInside Register) {
    Expected<std::string> Spec = environmentSpec();
    if (!Spec)
      return Spec.takeError();
    Expected<PhaseOrderingSetup> Setup = PhaseOrderingSetup::fromOptions();
    if (!Setup)
      return Setup.takeError();
    if (Setup->Settings.Programs.Reward.needs(
            RewardFunction::Measure::WeightedCycles))
      if (Error E = mapFrequencies())
        return E;
    Setup->Settings.Programs.Register = std::move(Register);
    PhaseOrderingEnvironment Environment(std::move(Setup->Settings),
                                         std::move(Setup->Features));
    return serveEnvironment(Environment, std::string_view(*Spec));
  }

  RegisterInsideOf Register;
};

} // namespace

void registerPhaseOrderingEnvironment(PassBuilder &PB,
                                      RegisterInsideOf Register) {
  registerModulePass(PB, "mlbridge-phase-ordering-environment",
                     EnvironmentPass(Register));
}

} // namespace MLBridge
