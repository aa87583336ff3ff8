//===- SizeReplay.cpp - Replays decisions about size ----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Adds the inline advisor, the passes and the attributes to LLVM's pipelines.
///
//===----------------------------------------------------------------------===//

#include "Size/SizeReplay.h"

#include "Inliner/DecisionReplay.h"
#include "Inliner/Inliner.h"
#include "MachineCode/MachineCode.h"
#include "PhaseOrdering/PhaseOrderingOptions.h"
#include "Pipeline/Applicability.h"
#include "Pipeline/PassRunner.h"
#include "Pipeline/PipelineReplacement.h"
#include "Support/ModelSession.h"
#include "Support/Options.h"
#include "Support/SizeOption.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace MLBridge {
namespace {

constexpr StringLiteral OptionName = "mlbridge-size";

/// LLVM's -outliner-benefit-threshold if a model decides. LLVM's default is 1,
/// but each outlined function also has an entry in .eh_frame. With 8, the sum
/// of .text and .eh_frame was smallest.
constexpr unsigned LeastWithModel = 8;

/// Reads the inlining decisions when the inliner first needs them.
class InliningOfFile final : public InlineAdvisorSource {
public:
  explicit InliningOfFile(std::string Path) : Path(std::move(Path)) {}

  std::unique_ptr<InlineAdvisor> create(Module &M, ModuleAnalysisManager &MAM,
                                        FunctionAnalysisManager &FAM,
                                        const InlineParams &Params,
                                        InlineContext IC) override {
    if (!Source)
      Source = openDecisions(Path, M);
    return Source ? Source->create(M, MAM, FAM, Params, IC) : nullptr;
  }

private:
  const std::string Path;
  std::unique_ptr<InlineAdvisorSource> Source;
};

/// Applies the decisions about outlining.
class OutliningPass : public PassInfoMixin<OutliningPass> {
public:
  OutliningPass(std::shared_ptr<SizeReplay> Replay, ThinOrFullLTOPhase Phase)
      : Replay(std::move(Replay)), Phase(Phase) {}
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    Replay->outline(M, Phase);
    return PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }

private:
  std::shared_ptr<SizeReplay> Replay;
  ThinOrFullLTOPhase Phase;
};

} // namespace

static void report(Module &M, const Error &E) {
  M.getContext().emitError(ModelSession::prefix(OptionName, M) + E.str());
}

SizeReplay::SizeReplay(std::string Given)
    : Path(std::move(Given)),
      Inlining(Path.empty() ? nullptr
                            : std::make_shared<InliningOfFile>(Path)) {}

std::shared_ptr<SizeReplay> SizeReplay::fromOptions() {
  const StringRef File = sizeDecisionsFile();
  if (File.empty() && sizeModelSpec().empty())
    return nullptr;
  return std::shared_ptr<SizeReplay>(new SizeReplay(File.str()));
}

void SizeReplay::registerInlining(PassBuilder &PB) {
  if (Inlining)
    registerAdvisorSource(PB, Inlining);
}

const SizeDecisions *SizeReplay::decisions(Module &M) {
  if (!Path.empty() && !std::exchange(HasRead, true)) {
    Expected<SizeDecisions> Given = SizeDecisions::read(Path);
    if (Given)
      Decisions = std::move(*Given);
    else if (Given.code() != ErrorCode::System)
      report(M, Error(Given.code(), Path + ": " + Given.takeError().message()));
  }
  return Decisions ? &*Decisions : nullptr;
}

/// Makes the code generator outline.
Error SizeReplay::enableOutliner(unsigned Least) {
  const std::pair<const char *, std::string> Wanted[] = {
      {"enable-machine-outliner", "always"},
      {"enable-linkonceodr-outlining", "true"},
      {"outliner-benefit-threshold", std::to_string(Least)}};
  for (const auto &[Name, Value] : Wanted) {
    Expected<bool> IsSet = setLLVMOption(Name, Value);
    if (!IsSet)
      return IsSet.takeError();
    if (*IsSet)
      Options.emplace_back(Name);
  }
  return Error::success();
}

/// True if \p M has or uses functions with C++ names.
static bool isCPlusPlus(const Module &M) {
  return any_of(
      M, [](const Function &F) { return F.getName().starts_with("_Z"); });
}

static bool hasLoops(Function &F) {
  const DominatorTree Tree(F);
  return !LoopInfo(Tree).empty();
}

void SizeReplay::outline(Module &M, ThinOrFullLTOPhase Phase) {
  const SizeDecisions *Given = decisions(M);
  if (!Given && !Path.empty())
    return;
  const SizeDecisions::Outlining *OfFile =
      Given ? &Given->outliningFor(M.getSourceFileName()) : nullptr;
  // With a model, functions of C++ with loops stay whole, because a call in a
  // loop takes time. In C, inlining saves little, so they do not stay whole.
  const bool KeepsLoops = isCPlusPlus(M);
  auto StaysWhole = [&](Function &F) {
    return OfFile ? OfFile->Without.contains(F.getName())
                  : !F.hasOptSize() || (KeepsLoops && hasLoops(F));
  };
  for (Function &F : M)
    if (!F.isDeclaration() && StaysWhole(F))
      F.addFnAttr("nooutline");
  const unsigned Least = OfFile ? OfFile->Least : LeastWithModel;
  if (Least == 0 || Phase != ThinOrFullLTOPhase::None)
    return;
  if (const StringRef WhyNot = whyNotOutlined(M); !WhyNot.empty())
    printLine("remark: " + ModelSession::prefix(OptionName, M) +
              "nothing is outlined: " + WhyNot);
  else if (Error E = enableOutliner(Least))
    report(M, E);
}

void SizeReplay::undoOutlining() {
  for (const std::string &Name : Options)
    resetLLVMOption(Name);
  Options.clear();
}

bool SizeReplay::runPasses(Module &M, const StockPipeline &Stock,
                           StringRef WhyNot, const RegisterInside &Register) {
  const SizeDecisions *Given = decisions(M);
  if (!Given)
    return false;
  const StringRef Passes = Given->pipelineFor(M.getSourceFileName()).second;
  if (Passes.empty() || Stock.isBeforeLink() ||
      Stock.Phase == ThinOrFullLTOPhase::ThinLTOPostLink)
    return false;
  if (WhyNot.empty())
    WhyNot = whyNotReplaced(M);
  if (!WhyNot.empty()) {
    printLine("remark: " + ModelSession::prefix(OptionName, M) + WhyNot +
              "; using LLVM's own pipeline");
    return false;
  }
  Expected<std::unique_ptr<TargetMachine>> TM = createTargetMachine(M);
  if (!TM) {
    report(M, TM.takeError());
    return false;
  }
  PassRunner Runner(M, **TM, EmbeddingKind::Symbolic, [&](PassBuilder &Inner) {
    Register(Inner);
    registerInlining(Inner);
  });
  Runner.addDiscriminators();
  Error E = Runner.run(Passes);
  if (E)
    report(M, E);
  return !E;
}

void registerSizeReplay(PassBuilder &PB, RegisterInsideOf Register) {
  const std::shared_ptr<SizeReplay> Replay = SizeReplay::fromOptions();
  if (!Replay)
    return;
  Replay->registerInlining(PB);
  PB.registerOptimizerLastEPCallback([=](ModulePassManager &Passes,
                                         OptimizationLevel,
                                         ThinOrFullLTOPhase Phase) {
    Passes.addPass(OutliningPass(Replay, Phase));
  });
  if (!phaseOrderingSpec().empty())
    return;
  replacePipelines(PB, [=](Module &M, ModuleAnalysisManager &MAM,
                           const StockPipeline &Stock, StringRef WhyNot) {
    return Replay->runPasses(M, Stock, WhyNot,
                             registerInside(Register, M, MAM));
  });
}

} // namespace MLBridge
