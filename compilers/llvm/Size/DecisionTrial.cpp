//===- DecisionTrial.cpp - Optimises a program with decisions -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// TrialAdvisor decides about call sites and records them.
///
//===----------------------------------------------------------------------===//

#include "Size/DecisionTrial.h"

#include "Inliner/InlineAdvisorSource.h"
#include "Inliner/Inliner.h"
#include "MachineCode/MachineCode.h"
#include "Pipeline/ModuleCopy.h"
#include "Pipeline/PassRunner.h"

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace MLBridge {
namespace {

class TrialSource final : public InlineAdvisorSource {
public:
  TrialSource(const DecisionTable &Table, std::vector<CallSite> &Sites)
      : Table(Table), Sites(Sites) {}

  std::unique_ptr<InlineAdvisor> create(Module &M, ModuleAnalysisManager &,
                                        FunctionAnalysisManager &FAM,
                                        const InlineParams &Params,
                                        InlineContext IC) override;

private:
  const DecisionTable &Table;
  std::vector<CallSite> &Sites;
};

class TrialAdvisor final : public InlineAdvisor {
public:
  TrialAdvisor(Module &M, FunctionAnalysisManager &FAM,
               const InlineParams &Params, InlineContext IC,
               const DecisionTable &Table, std::vector<CallSite> &Sites)
      : InlineAdvisor(M, FAM, IC), Heuristic(M, FAM, Params, IC), Table(Table),
        Sites(Sites) {}

private:
  std::unique_ptr<InlineAdvice> getAdviceImpl(CallBase &Call) override {
    return std::make_unique<InlineAdvice>(this, Call, getCallerORE(Call),
                                          decide(Call));
  }
  bool decide(CallBase &Call);

  DefaultInlineAdvisor Heuristic;
  const DecisionTable &Table;
  std::vector<CallSite> &Sites;
};

} // namespace

std::unique_ptr<InlineAdvisor> TrialSource::create(Module &M,
                                                   ModuleAnalysisManager &,
                                                   FunctionAnalysisManager &FAM,
                                                   const InlineParams &Params,
                                                   InlineContext IC) {
  return std::make_unique<TrialAdvisor>(M, FAM, Params, IC, Table, Sites);
}

/// Returns the name of \p F in its file.
static StringRef nameInFile(const Function &F) {
  const DISubprogram *Program = F.getSubprogram();
  if (!F.hasLocalLinkage() || !Program)
    return F.getName();
  const StringRef Linked = Program->getLinkageName();
  return Linked.empty() ? Program->getName() : Linked;
}

/// True if no file of the program has both functions, so that only inlining at
/// link time could inline \p Callee.
static bool areApart(const Function &Caller, const Function &Callee) {
  if (!Callee.hasExternalLinkage())
    return false;
  const DISubprogram *From = Caller.getSubprogram();
  const DISubprogram *To = Callee.getSubprogram();
  return !From || !To || From->getUnit() != To->getUnit();
}

bool TrialAdvisor::decide(CallBase &Call) {
  Function &Callee = *Call.getCalledFunction();
  const Function &Caller = *Call.getCaller();
  if (areApart(Caller, Callee))
    return false;
  std::unique_ptr<InlineAdvice> Advice = Heuristic.getAdvice(Call);
  Advice->recordUnattemptedInlining();
  CallSite Site;
  Site.Default = Site.Decision = Advice->isInliningRecommended();
  Site.Location = locationOf(Call);
  if (Site.Location.empty() || &Caller == &Callee || whyNoChoice(Call, FAM))
    return Site.Default;
  Site.Callee = Callee.getName().str();
  Site.Caller = Caller.getName().str();
  Site.CalleeInFile = nameInFile(Callee).str();
  Site.CallerInFile = nameInFile(Caller).str();
  Site.CalleeIsMerged = Callee.hasLinkOnceLinkage();
  Site.CalleeUses = Callee.getNumUses();
  if (const auto Given = Table.find(Site.key()); Given != Table.end())
    Site.Decision = Given->second;
  Sites.push_back(Site);
  return Site.Decision;
}

Expected<TrialProgram> TrialProgram::create(const Module &M,
                                            bool KeepsExported) {
  Expected<std::unique_ptr<TargetMachine>> TM = createTargetMachine(M);
  if (!TM)
    return TM.takeError();
  TrialProgram Result(KeepsExported);
  Result.Bitcode = bitcodeOf(M);
  return Result;
}

Expected<TrialResult> TrialProgram::run(const DecisionTable &Table,
                                        StringRef Pipeline) {
  Expected<std::unique_ptr<ModuleCopy>> Copy =
      ModuleCopy::read(Bitcode, "program");
  if (!Copy)
    return Copy.takeError();
  Module &M = (*Copy)->module();
  Expected<std::unique_ptr<TargetMachine>> TM = createTargetMachine(M);
  if (!TM)
    return TM.takeError();
  TrialResult Result;
  {
    PassRunner Passes(
        M, **TM, EmbeddingKind::Symbolic, [&](PassBuilder &Inner) {
          registerAdvisorSource(
              Inner, std::make_shared<TrialSource>(Table, Result.Sites));
        });
    // Add discriminators, as clang does with -fdebug-info-for-profiling.
    if (Error E = Passes.run("function(add-discriminators)"))
      return E;
    if (Pipeline.empty())
      Passes.run(StockPipeline());
    else if (Error E = Passes.run(Pipeline))
      return E;
  }
  Expected<LinkedText> Text = Meter.measure(M);
  if (!Text)
    return Text.takeError();
  if (std::string Problem = (*Copy)->takeErrors(); !Problem.empty())
    return Error(ErrorCode::Unsupported, std::move(Problem));
  Result.Text = std::move(*Text);
  return Result;
}

} // namespace MLBridge
