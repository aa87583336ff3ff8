//===- SizeDecider.cpp - Decides about code size --------------------------===//
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

#include "Size/SizeDecider.h"

#include "Inliner/DecisionReplay.h"
#include "Inliner/Inliner.h"
#include "MachineCode/MachineCode.h"
#include "PhaseOrdering/PhaseOrderingOptions.h"
#include "Pipeline/Applicability.h"
#include "Pipeline/PassRunner.h"
#include "Pipeline/PipelineReplacement.h"
#include "Size/SizeDecisions.h"
#include "Support/ModelSession.h"
#include "Support/Options.h"
#include "Support/ReadFile.h"
#include "Support/SizeOption.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

#include <optional>
#include <utility>

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

/// Replays the decisions of a file.
class DecisionFile final : public SizeDecider {
public:
  explicit DecisionFile(StringRef Path)
      : Path(Path), Inlining(std::make_shared<InliningOfFile>(this->Path)) {}

  void registerInlining(PassBuilder &PB) override {
    registerAdvisorSource(PB, Inlining);
  }
  bool runPasses(Module &M, const StockPipeline &Stock, StringRef WhyNot,
                 const RegisterInside &Register) override;

private:
  unsigned markWhole(Module &M) override;
  /// Returns null if the file cannot be read or has mistakes. The first call
  /// reads it and reports mistakes. The inliner reports a file that cannot be
  /// read.
  const SizeDecisions *decisions(Module &M);

  const std::string Path;
  const std::shared_ptr<InliningOfFile> Inlining;
  bool HasRead = false;
  std::optional<SizeDecisions> Decisions;
};

/// Outlines code. Models, which the inliner and phase ordering ask, decide
/// about inlining and passes.
class OutlinerOfModels final : public SizeDecider {
  unsigned markWhole(Module &M) override;
};

/// Applies the decisions about outlining.
class OutliningPass : public PassInfoMixin<OutliningPass> {
public:
  OutliningPass(std::shared_ptr<SizeDecider> Decider, ThinOrFullLTOPhase Phase)
      : Decider(std::move(Decider)), Phase(Phase) {}
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    Decider->outline(M, Phase);
    return PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }

private:
  std::shared_ptr<SizeDecider> Decider;
  ThinOrFullLTOPhase Phase;
};

} // namespace

static void report(Module &M, const Error &E) {
  M.getContext().emitError(ModelSession::prefix(OptionName, M) + E.str());
}

std::shared_ptr<SizeDecider> SizeDecider::fromOptions() {
  if (const StringRef File = sizeDecisionsFile(); !File.empty())
    return std::make_shared<DecisionFile>(File);
  if (!sizeModelSpec().empty())
    return std::make_shared<OutlinerOfModels>();
  return nullptr;
}

void SizeDecider::registerInlining(PassBuilder &) {}

bool SizeDecider::runPasses(Module &, const StockPipeline &, StringRef,
                            const RegisterInside &) {
  return false;
}

/// Makes the code generator outline.
Error SizeDecider::enableOutliner(unsigned Least) {
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

void SizeDecider::outline(Module &M, ThinOrFullLTOPhase Phase) {
  const unsigned Least = markWhole(M);
  if (Least == 0 || Phase != ThinOrFullLTOPhase::None)
    return;
  if (const StringRef WhyNot = whyNotOutlined(M); !WhyNot.empty())
    printLine("remark: " + ModelSession::prefix(OptionName, M) +
              "nothing is outlined: " + WhyNot);
  else if (Error E = enableOutliner(Least))
    report(M, E);
}

void SizeDecider::undoOutlining() {
  for (const std::string &Name : Options)
    resetLLVMOption(Name);
  Options.clear();
}

const SizeDecisions *DecisionFile::decisions(Module &M) {
  if (!std::exchange(HasRead, true)) {
    Expected<SizeDecisions> Given = SizeDecisions::read(Path);
    if (Given)
      Decisions = std::move(*Given);
    else if (Given.code() != ErrorCode::System)
      report(M, inFile(Path, Given.takeError()));
  }
  return Decisions ? &*Decisions : nullptr;
}

bool DecisionFile::runPasses(Module &M, const StockPipeline &Stock,
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

static void keepWhole(Module &M, function_ref<bool(Function &)> StaysWhole) {
  for (Function &F : M)
    if (!F.isDeclaration() && StaysWhole(F))
      F.addFnAttr("nooutline");
}

unsigned DecisionFile::markWhole(Module &M) {
  const SizeDecisions *Given = decisions(M);
  if (!Given)
    return 0;
  const SizeDecisions::Outlining &OfFile =
      Given->outliningFor(M.getSourceFileName());
  keepWhole(M, [&](Function &F) { return OfFile.Whole.contains(F.getName()); });
  return OfFile.Least;
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

unsigned OutlinerOfModels::markWhole(Module &M) {
  // Functions of C++ with loops stay whole, because a call in a loop takes
  // time. In C, inlining saves little, so they do not stay whole.
  const bool KeepsLoops = isCPlusPlus(M);
  keepWhole(M, [&](Function &F) {
    return !F.hasOptSize() || (KeepsLoops && hasLoops(F));
  });
  return LeastWithModel;
}

void registerSizeDecider(PassBuilder &PB, RegisterInsideOf Register) {
  const std::shared_ptr<SizeDecider> Decider = SizeDecider::fromOptions();
  if (!Decider)
    return;
  Decider->registerInlining(PB);
  PB.registerOptimizerLastEPCallback([=](ModulePassManager &Passes,
                                         OptimizationLevel,
                                         ThinOrFullLTOPhase Phase) {
    Passes.addPass(OutliningPass(Decider, Phase));
  });
  if (!phaseOrderingSpec().empty())
    return;
  replacePipelines(PB, [=](Module &M, ModuleAnalysisManager &MAM,
                           const StockPipeline &Stock, StringRef WhyNot) {
    return Decider->runPasses(M, Stock, WhyNot,
                              registerInside(Register, M, MAM));
  });
}

} // namespace MLBridge
