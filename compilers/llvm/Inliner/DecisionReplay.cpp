//===- DecisionReplay.cpp - Replays a file of decisions -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ReplayAdvisor looks up each call site, and ReplayedModule counts the
/// results.
///
//===----------------------------------------------------------------------===//

#include "Inliner/DecisionReplay.h"

#include "Support/ModelSession.h"
#include "Support/ModelSpecParser.h"
#include "Support/Options.h"

#include "llvm/Analysis/InlineCost.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace MLBridge {
namespace {

class ReplayAdvisor final : public InlineAdvisor {
public:
  ReplayAdvisor(Module &M, FunctionAnalysisManager &FAM,
                const InlineParams &Params, InlineContext IC,
                ReplayedModule &Of)
      : InlineAdvisor(M, FAM, IC), Of(Of), Heuristic(M, FAM, Params, IC) {}

private:
  std::unique_ptr<InlineAdvice> getAdviceImpl(CallBase &Call) override {
    const std::optional<bool> Inline = Of.decide(Call, FAM);
    if (!Inline)
      return Heuristic.getAdvice(Call);
    std::optional<InlineCost> Cost;
    if (*Inline)
      Cost = InlineCost::getAlways("decision file");
    return std::make_unique<DefaultInlineAdvice>(this, Call, Cost,
                                                 getCallerORE(Call));
  }

  ReplayedModule &Of;
  DefaultInlineAdvisor Heuristic;
};

} // namespace

ReplayedModule::ReplayedModule(InlineDecisions Given, std::string Prefix,
                               const Module &M)
    : File(std::move(Given)), Prefix(std::move(Prefix)), OfModule(File.size()),
      Applied(File.size()), Refused(File.size()) {
  for (unsigned Index = 0; Index < File.size(); ++Index)
    if (const Function *F = M.getFunction(File[Index].Caller))
      OfModule[Index] = !F->isDeclaration();
}

ReplayedModule::~ReplayedModule() {
  if (OfModule.any() && WithLocation == 0 && WithoutLocation != 0)
    printLine("remark: " + Prefix + "none of " + Twine(WithoutLocation) +
              " call sites has a location, so the decisions do not apply; "
              "compile with -Rpass=none -fdebug-info-for-profiling");
  if (Refused.any())
    printLine("remark: " + Prefix + Twine(Refused.count()) +
              " decisions to inline are illegal; the first is " +
              withoutControls(FirstRefusal));
  // Passes may add functions, such as the parts of a coroutine.
  OfModule |= Applied;
  OfModule |= Refused;
  if (printStatistics())
    printLine(Prefix +
              formatv("decisions={0} applied={1} illegal={2} not_found={3} "
                      "moved={4}",
                      OfModule.count(), Applied.count(), Refused.count(),
                      BitVector(OfModule).reset(Applied).reset(Refused).count(),
                      Moved.value_or(0))
                  .str());
}

std::unique_ptr<InlineAdvisor>
ReplayedModule::create(Module &M, ModuleAnalysisManager &,
                       FunctionAnalysisManager &FAM, const InlineParams &Params,
                       InlineContext IC) {
  beginRun(M, IC);
  return std::make_unique<ReplayAdvisor>(M, FAM, Params, IC, *this);
}

void ReplayedModule::beginRun(const Module &M, InlineContext IC) {
  if (Moved)
    return;
  // When LTO links, the compile step has already inlined calls. They would look
  // like moved calls.
  const bool IsLink = IC.LTOPhase == ThinOrFullLTOPhase::ThinLTOPostLink ||
                      IC.LTOPhase == ThinOrFullLTOPhase::FullLTOPostLink;
  Moved = IsLink ? 0 : File.moveTo(M);
}

std::optional<bool> ReplayedModule::decide(CallBase &Call,
                                           FunctionAnalysisManager &FAM) {
  const std::string Location = locationOf(Call);
  ++(Location.empty() ? WithoutLocation : WithLocation);
  if (Location.empty())
    return std::nullopt;
  const StringRef Callee = Call.getCalledFunction()->getName();
  const int Index = File.find(Callee, Location);
  if (Index < 0)
    return std::nullopt;
  const bool Inline = File[Index].Inline;
  if (const char *Why = whyNoChoice(Call, FAM)) {
    if (Inline && FirstRefusal.empty())
      FirstRefusal = ("'" + Callee + "' at " + Location + ": " + Why).str();
    if (Inline)
      Refused.set(Index);
    return std::nullopt;
  }
  Applied.set(Index);
  return Inline;
}

DecisionSpec parseDecisionSpec(StringRef Spec) {
  StringRef File = Spec;
  if (File.consume_front(DecisionScheme))
    return {"", File.str()};
  const auto [Model, Last] = Spec.rsplit('|');
  File = Last;
  if (File.consume_front(DecisionScheme))
    return {(Model + "|none").str(), File.str()};
  return {Spec.str(), ""};
}

std::unique_ptr<ReplayedModule> openDecisions(StringRef Path, Module &M) {
  const std::string Prefix = ModelSession::prefix("mlbridge-inliner", M);
  Expected<InlineDecisions> File = InlineDecisions::read(Path);
  if (!File) {
    M.getContext().emitError(Prefix + Path + ": " + File.takeError().str());
    return nullptr;
  }
  return std::make_unique<ReplayedModule>(std::move(*File), Prefix, M);
}

} // namespace MLBridge
