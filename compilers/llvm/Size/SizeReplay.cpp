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
#include "Size/SizeDecisions.h"
#include "Support/ModelSession.h"
#include "Support/Options.h"

#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace MLBridge {
namespace {

struct SizeSpecParser : cl::parser<std::string> {
  using cl::parser<std::string>::parser;
  bool parse(cl::Option &O, StringRef, StringRef Arg, std::string &Value) {
    if (!Arg.consume_front("decisions:") || Arg.empty())
      return O.error("expected decisions:FILE");
    Value = Arg.str();
    return false;
  }
};

cl::opt<std::string, false, SizeSpecParser> SizeOpt(
    "mlbridge-size", cl::cat(optionCategory()),
    cl::value_desc("decisions:file"),
    cl::desc(
        "Replay the decisions about inlining, passes and outlining in a file "
        "that mlbridge search smallest-code has written"));

constexpr StringLiteral OptionName = "mlbridge-size";

/// Reads the inlining decisions when the inliner first needs them.
class InliningOfFile final : public InlineAdvisorSource {
public:
  std::unique_ptr<InlineAdvisor> create(Module &M, ModuleAnalysisManager &MAM,
                                        FunctionAnalysisManager &FAM,
                                        const InlineParams &Params,
                                        InlineContext IC) override {
    if (!Source)
      Source = openDecisions(SizeOpt, M);
    return Source ? Source->create(M, MAM, FAM, Params, IC) : nullptr;
  }

private:
  std::unique_ptr<InlineAdvisorSource> Source;
};

/// The decisions about files, which are read when they are first needed.
class DecisionsOfFile {
public:
  /// Returns null if the file cannot be read or has mistakes. The first call
  /// reports mistakes. The inliner reports a file that cannot be read.
  const SizeDecisions *get(Module &M);

private:
  bool HasRead = false;
  std::optional<SizeDecisions> Decisions;
};

/// Applies the decisions about outlining.
class OutliningPass : public PassInfoMixin<OutliningPass> {
public:
  OutliningPass(std::shared_ptr<DecisionsOfFile> File, ThinOrFullLTOPhase Phase)
      : File(std::move(File)), Phase(Phase) {}
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &);
  static bool isRequired() { return true; }

private:
  std::shared_ptr<DecisionsOfFile> File;
  ThinOrFullLTOPhase Phase;
};

} // namespace

static void report(Module &M, const Error &E) {
  M.getContext().diagnose(DiagnosticInfoGeneric(
      ModelSession::prefix(OptionName, M) + E.str(), DS_Error));
}

const SizeDecisions *DecisionsOfFile::get(Module &M) {
  if (!std::exchange(HasRead, true)) {
    Expected<SizeDecisions> Given = SizeDecisions::read(SizeOpt);
    if (Given)
      Decisions = std::move(*Given);
    else if (Given.code() != ErrorCode::System)
      report(M,
             Error(Given.code(), SizeOpt + ": " + Given.takeError().message()));
  }
  return Decisions ? &*Decisions : nullptr;
}

/// Makes the code generator outline.
static Error enableOutliner(unsigned Least) {
  if (Error E = setLLVMOption("enable-machine-outliner", "always"))
    return E;
  if (Error E = setLLVMOption("enable-linkonceodr-outlining", "true"))
    return E;
  return setLLVMOption("outliner-benefit-threshold", std::to_string(Least));
}

PreservedAnalyses OutliningPass::run(Module &M, ModuleAnalysisManager &) {
  const SizeDecisions *Decisions = File->get(M);
  if (!Decisions)
    return PreservedAnalyses::all();
  const SizeDecisions::Outlining &Outlining =
      Decisions->outliningFor(M.getSourceFileName());
  for (Function &F : M)
    if (!F.isDeclaration() && Outlining.Without.contains(F.getName()))
      F.addFnAttr("nooutline");
  if (Outlining.Least != 0 && Phase == ThinOrFullLTOPhase::None)
    if (Error E = enableOutliner(Outlining.Least))
      report(M, E);
  return PreservedAnalyses::all();
}

/// Runs \p Passes on \p M. Returns false if LLVM's own pipeline should run.
static bool runPasses(Module &M, StringRef Passes, const StockPipeline &Stock,
                      StringRef WhyNot, const RegisterInside &Register) {
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
  PassRunner Runner(M, **TM, EmbeddingKind::Symbolic, Register);
  // Add discriminators, as clang does with -fdebug-info-for-profiling.
  Error E = Runner.run("function(add-discriminators)");
  if (!E)
    E = Runner.run(Passes);
  if (E)
    report(M, E);
  return !E;
}

void registerSizeReplay(PassBuilder &PB, RegisterInsideOf Register) {
  if (SizeOpt.empty())
    return;
  const auto Inlining = std::make_shared<InliningOfFile>();
  const auto File = std::make_shared<DecisionsOfFile>();
  registerAdvisorSource(PB, Inlining);
  PB.registerOptimizerLastEPCallback([=](ModulePassManager &Passes,
                                         OptimizationLevel,
                                         ThinOrFullLTOPhase Phase) {
    Passes.addPass(OutliningPass(File, Phase));
  });
  if (!phaseOrderingSpec().empty())
    return;
  replacePipelines(PB, [=](Module &M, ModuleAnalysisManager &MAM,
                           const StockPipeline &Stock, StringRef WhyNot) {
    const SizeDecisions *Decisions = File->get(M);
    if (!Decisions)
      return false;
    return runPasses(M, Decisions->pipelineFor(M.getSourceFileName()).second,
                     Stock, WhyNot, [&](PassBuilder &Inner) {
                       Register(Inner, M, MAM);
                       registerAdvisorSource(Inner, Inlining);
                     });
  });
}

} // namespace MLBridge
