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

bool areApart(const CallBase &Call) {
  const Function &Callee = *Call.getCalledFunction();
  if (!Callee.hasExternalLinkage())
    return false;
  const DISubprogram *From = Call.getCaller()->getSubprogram();
  const DISubprogram *To = Callee.getSubprogram();
  return !From || !To || From->getUnit() != To->getUnit();
}

CallSite callSiteOf(const CallBase &Call, bool Default) {
  const Function &Callee = *Call.getCalledFunction();
  const Function &Caller = *Call.getCaller();
  CallSite Site;
  Site.Callee = Callee.getName().str();
  Site.Caller = Caller.getName().str();
  Site.CalleeInFile = nameInFile(Callee).str();
  Site.CallerInFile = nameInFile(Caller).str();
  Site.Location = locationOf(Call);
  Site.Default = Site.Decision = Default;
  Site.CalleeIsLinkOnce = Callee.hasLinkOnceLinkage();
  Site.CalleeUses = Callee.getNumUses();
  return Site;
}

bool TrialAdvisor::decide(CallBase &Call) {
  if (areApart(Call))
    return false;
  std::unique_ptr<InlineAdvice> Advice = Heuristic.getAdvice(Call);
  Advice->recordUnattemptedInlining();
  const bool Default = Advice->isInliningRecommended();
  if (!Call.getDebugLoc() || Call.getCaller() == Call.getCalledFunction() ||
      whyNoChoice(Call, FAM))
    return Default;
  CallSite Site = callSiteOf(Call, Default);
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
  TrialResult Result;
  Expected<LinkedText> Text =
      run(std::make_shared<TrialSource>(Table, Result.Sites), Pipeline);
  if (!Text)
    return Text.takeError();
  Result.Text = std::move(*Text);
  return Result;
}

Expected<LinkedText>
TrialProgram::run(std::shared_ptr<InlineAdvisorSource> Source,
                  StringRef Pipeline) {
  Expected<std::unique_ptr<ModuleCopy>> Copy =
      ModuleCopy::read(Bitcode, "program");
  if (!Copy)
    return Copy.takeError();
  Module &M = (*Copy)->module();
  Expected<std::unique_ptr<TargetMachine>> TM = createTargetMachine(M);
  if (!TM)
    return TM.takeError();
  {
    PassRunner Passes(M, **TM, EmbeddingKind::Symbolic,
                      [&](PassBuilder &Inner) {
                        registerAdvisorSource(Inner, std::move(Source));
                      });
    Passes.addDiscriminators();
    if (Pipeline.empty())
      Passes.run(StockPipeline());
    else if (Error E = Passes.run(Pipeline))
      return E;
  }
  Expected<LinkedText> Text = Meter.measure(M);
  if (!Text)
    return Text;
  if (std::string Problem = (*Copy)->takeErrors(); !Problem.empty())
    return Error(ErrorCode::Unsupported, std::move(Problem));
  return Text;
}

} // namespace MLBridge
