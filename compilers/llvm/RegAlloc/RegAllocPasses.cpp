//===- RegAllocPasses.cpp - Adds register allocation to LLVM --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Adds passes to the code generator of clang, llc and lld if an option needs
/// them: AllocationPass before LLVM's register allocator, CostPass after it,
/// and TripletsPass.
/// \code
///   llc -O2 -load=MLBridgeLLVM.so -mlbridge-regalloc-policy=weight a.bc
/// \endcode
///
/// The code generator uses LLVM's legacy pass manager. It does not run these
/// passes at -O0, where another allocator is used.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/AllocationCost.h"
#include "RegAlloc/AllocationDriver.h"
#include "RegAlloc/AllocationEnvironment.h"
#include "RegAlloc/AllocationSearch.h"
#include "RegAlloc/GreedyAdvisors.h"
#include "RegAlloc/MIR2Vec.h"
#include "RegAlloc/RegAllocOptions.h"
#include "RegAlloc/RegisterAllocator.h"
#include "Support/AppendToFile.h"
#include "Support/ModelSession.h"
#include "Support/Options.h"

#include "llvm/CodeGen/MachineBlockFrequencyInfo.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/RegisterTargetPassConfigCallback.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace MLBridge {
namespace {

/// Sums over the functions of a module.
struct ModuleStatistics {
  unsigned Functions = 0;
  unsigned Declined = 0;
  unsigned Partly = 0;
  AllocationStatistics Sum;
  /// The first function that was declined, and the reason.
  std::string FirstDeclined, WhyDeclined;

  void decline(const MachineFunction &MF, StringRef Why) {
    if (Declined++ != 0)
      return;
    FirstDeclined = withoutControls(MF.getName());
    WhyDeclined = Why;
  }
  std::string declined() const {
    return ("functions left to LLVM's allocator: " + Twine(Declined) +
            "; the first is '" + FirstDeclined + "', because " + WhyDeclined)
        .str();
  }

  void add(const AllocationStatistics &Function) {
    Partly += Function.Left != 0;
    Sum.Decisions += Function.Decisions;
    Sum.Assigned += Function.Assigned;
    Sum.Evicted += Function.Evicted;
    Sum.Spilled += Function.Spilled;
    Sum.Split += Function.Split;
    Sum.Recoloured += Function.Recoloured;
    Sum.Left += Function.Left;
  }

  std::string str() const {
    return (Twine(Functions) + " functions, " + Twine(Declined) +
            " declined, " + Twine(Partly) + " partly left to greedy (" +
            Twine(Sum.Left) + " live ranges); " + Twine(Sum.Decisions) +
            " decisions: " + Twine(Sum.Assigned) + " assigned, " +
            Twine(Sum.Evicted) + " evicted, " + Twine(Sum.Split) + " split, " +
            Twine(Sum.Spilled) + " spilled, " + Twine(Sum.Recoloured) +
            " recoloured")
        .str();
  }
};

/// Allocates each function before LLVM's allocator, which allocates the rest.
class AllocationPass final : public MachineFunctionPass {
public:
  static char ID;
  explicit AllocationPass(std::shared_ptr<AllocationDriver> Driver)
      : MachineFunctionPass(ID), Driver(std::move(Driver)) {}

  StringRef getPassName() const override {
    return "ML-Compiler-Bridge register allocation";
  }
  void getAnalysisUsage(AnalysisUsage &Usage) const override {
    AllocationContext::addRequired(Usage);
    MachineFunctionPass::getAnalysisUsage(Usage);
  }
  MachineFunctionProperties getRequiredProperties() const override {
    return MachineFunctionProperties().setNoPHIs();
  }
  MachineFunctionProperties getClearedProperties() const override {
    return MachineFunctionProperties().setIsSSA();
  }

  bool runOnMachineFunction(MachineFunction &MF) override;
  bool doInitialization(Module &M) override {
    Statistics = {};
    Driver->beginModule(M);
    return false;
  }
  bool doFinalization(Module &M) override {
    const std::string Prefix = ModelSession::prefix("mlbridge-regalloc", M);
    if (Statistics.Declined != 0)
      printLine("remark: " + Prefix + Statistics.declined());
    if (printStatistics() && Driver->needsAllocator())
      printLine(Prefix + Statistics.str());
    setGreedyAdvisors({});
    Driver->endModule(M);
    return false;
  }

private:
  const std::shared_ptr<AllocationDriver> Driver;
  ModuleStatistics Statistics;
};

/// Writes triplets of MIR2Vec.
class TripletsPass final : public MachineFunctionPass {
public:
  static char ID;
  TripletsPass() : MachineFunctionPass(ID) {}

  StringRef getPassName() const override {
    return "ML-Compiler-Bridge triplets of MIR2Vec";
  }
  void getAnalysisUsage(AnalysisUsage &Usage) const override {
    Usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(Usage);
  }
  bool runOnMachineFunction(MachineFunction &MF) override {
    Triplets.add(MF);
    return false;
  }
  bool doFinalization(Module &M) override {
    if (Error Failure = Triplets.appendTo(tripletsFile()))
      M.getContext().emitError("mlbridge-mir2vec-triplets: " + Failure.str());
    Triplets = {};
    return false;
  }

private:
  MIR2VecTriplets Triplets;
};

/// Measures each function's cost, for the driver and for
/// -mlbridge-regalloc-costs.
class CostPass final : public MachineFunctionPass {
public:
  static char ID;
  explicit CostPass(std::shared_ptr<AllocationDriver> Driver)
      : MachineFunctionPass(ID), Driver(std::move(Driver)) {}

  StringRef getPassName() const override {
    return "ML-Compiler-Bridge cost of register allocation";
  }
  void getAnalysisUsage(AnalysisUsage &Usage) const override {
    Usage.setPreservesAll();
    Usage.addRequired<MachineBlockFrequencyInfoWrapperPass>();
    MachineFunctionPass::getAnalysisUsage(Usage);
  }
  bool runOnMachineFunction(MachineFunction &MF) override;
  bool doInitialization(Module &) override {
    Failed = false;
    Driver->expectCosts();
    return false;
  }

private:
  const std::shared_ptr<AllocationDriver> Driver;
  /// True if the file of the costs could not be written in this module.
  bool Failed = false;
};

} // namespace

char AllocationPass::ID = 0;
char TripletsPass::ID = 0;
char CostPass::ID = 0;

bool AllocationPass::runOnMachineFunction(MachineFunction &MF) {
  ++Statistics.Functions;
  setGreedyAdvisors({});
  AllocationContext Context(*this, MF);
  const char *WhyNot = whyNotDecided(Context);
  if (!WhyNot && Driver->needsAllocator())
    WhyNot = whyNotAllocatable(Context);
  if (WhyNot) {
    Statistics.decline(MF, WhyNot);
    return false;
  }
  std::unique_ptr<AllocationPolicy> Policy = Driver->begin(Context);
  if (!Policy)
    return false;
  Statistics.add(RegisterAllocator(Context, *Policy).run());
  return true;
}

/// Returns a line of JSON. If a search tried several policies on the function,
/// the line contains the cost of each policy.
static std::string lineOf(const MachineFunction &MF, const AllocationCost &Cost,
                          ArrayRef<TriedPolicy> Trials) {
  json::Object Result{
      {"module",
       json::fixUTF8(MF.getFunction().getParent()->getModuleIdentifier())},
      {"function", json::fixUTF8(MF.getName())},
      {"weighted_spills", Cost.WeightedSpills},
      {"weighted_reloads", Cost.WeightedReloads},
      {"weighted_copies", Cost.WeightedCopies},
      {"spills", Cost.Spills},
      {"reloads", Cost.Reloads},
      {"copies", Cost.Copies},
      {"instructions", Cost.Instructions},
  };
  if (!Trials.empty()) {
    json::Object Costs;
    for (const auto &[Policy, Found] : Trials)
      Costs[json::fixUTF8(Policy->Name)] =
          Found ? json::Value(Found->total()) : json::Value(nullptr);
    Result["trials"] = std::move(Costs);
  }
  std::string Line;
  raw_string_ostream(Line) << json::Value(std::move(Result)) << "\n";
  return Line;
}

bool CostPass::runOnMachineFunction(MachineFunction &MF) {
  const AllocationCost Cost = AllocationCost::of(
      MF, getAnalysis<MachineBlockFrequencyInfoWrapperPass>().getMBFI());
  Driver->finish(MF, Cost);
  if (allocationCostsFile().empty() || Failed)
    return false;
  if (Error E = appendToFile(allocationCostsFile(),
                             lineOf(MF, Cost, Driver->trials()))) {
    Failed = true;
    MF.getFunction().getContext().emitError("mlbridge-regalloc-costs: " +
                                            E.message());
  }
  return false;
}

static void addPasses(TargetMachine &Target, PassManagerBase &,
                      TargetPassConfig *Config) {
  // At -O0, the passes after which these passes are inserted do not run.
  if (Target.getOptLevel() == CodeGenOptLevel::None)
    return;
  std::shared_ptr<AllocationDriver> Driver = trainingDriver();
  const bool IsTraining = Driver != nullptr;
  const bool Searches = !IsTraining && allocationSearch() != 0;
  if (Searches)
    Driver = std::make_shared<AllocationSearch>(Target);
  else if (!IsTraining)
    Driver = std::make_shared<GivenAllocation>();
  if (IsTraining || Searches || !givenPolicy().isGreedy() ||
      !triedPolicies().empty())
    Config->insertPass(&MachineSchedulerID, new AllocationPass(Driver));
  if (!tripletsFile().empty())
    Config->insertPass(&MachineSchedulerID, new TripletsPass());
  if (!IsTraining && !Searches && allocationCostsFile().empty())
    return;
  // Exclude other targets, because for RISC-V, LLVM would insert a pass twice
  // and then delete it twice.
  const Triple &For = Target.getTargetTriple();
  if (canAllocateFor(For))
    Config->insertPass(&VirtRegRewriterID, new CostPass(Driver));
  else if (!allocationCostsFile().empty())
    printLine("remark: mlbridge-regalloc-costs: costs are measured for x86-64 "
              "and aarch64, not for " +
              For.getArchName());
}

static RegisterTargetPassConfigCallback AddPasses(addPasses);

} // namespace MLBridge
