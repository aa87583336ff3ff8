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

#include "Inliner/InlineDecisions.h"
#include "ModelSession.h"
#include "Options.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/Analysis/InlineCost.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace MLBridge {
namespace {

/// The decisions for a module, and which of them were applied.
class ReplayedModule final : public InlineAdvisorSource {
public:
  ReplayedModule(InlineDecisions File, std::string Prefix, const Module &M);
  ReplayedModule(const ReplayedModule &) = delete;
  ReplayedModule &operator=(const ReplayedModule &) = delete;
  ~ReplayedModule() override;

  std::unique_ptr<InlineAdvisor> create(Module &M, ModuleAnalysisManager &,
                                        FunctionAnalysisManager &FAM,
                                        const InlineParams &Params,
                                        InlineContext IC) override;

  /// Returns the decision about \p Call, or nothing if the file has none or if
  /// inlining is illegal.
  std::optional<bool> decide(CallBase &Call, FunctionAnalysisManager &FAM);

private:
  const InlineDecisions File;
  const std::string Prefix;
  /// The decisions whose caller this module defines.
  BitVector OfModule;
  BitVector Applied, Refused;
  std::string FirstRefusal;
  unsigned WithLocation = 0, WithoutLocation = 0;
};

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
              "compile with -Rpass=^$ -fdebug-info-for-profiling");
  if (Refused.any())
    printLine("remark: " + Prefix + Twine(Refused.count()) +
              " decisions to inline are illegal; the first is " + FirstRefusal);
  if (printStatistics())
    printLine(Prefix +
              formatv("decisions={0} applied={1} illegal={2} not_found={3}",
                      OfModule.count(), Applied.count(), Refused.count(),
                      BitVector(OfModule).reset(Applied).reset(Refused).count())
                  .str());
}

std::unique_ptr<InlineAdvisor>
ReplayedModule::create(Module &M, ModuleAnalysisManager &,
                       FunctionAnalysisManager &FAM, const InlineParams &Params,
                       InlineContext IC) {
  return std::make_unique<ReplayAdvisor>(M, FAM, Params, IC, *this);
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

StringRef decisionFileOf(StringRef Spec) {
  return Spec.consume_front("decisions:") ? Spec : StringRef();
}

std::unique_ptr<InlineAdvisorSource> openDecisions(StringRef Path, Module &M) {
  const std::string Prefix = ModelSession::prefix("mlbridge-inliner", M);
  Expected<InlineDecisions> File = InlineDecisions::read(Path);
  if (!File) {
    M.getContext().diagnose(DiagnosticInfoGeneric(
        Prefix + Path + ": " + File.takeError().str(), DS_Error));
    return nullptr;
  }
  return std::make_unique<ReplayedModule>(std::move(*File), Prefix, M);
}

} // namespace MLBridge
