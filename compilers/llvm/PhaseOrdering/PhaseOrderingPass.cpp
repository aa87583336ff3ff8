//===- PhaseOrderingPass.cpp - Lets a model choose the passes -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs an episode on the compiler's module.
///
//===----------------------------------------------------------------------===//

#include "PhaseOrdering/PhaseOrderingPass.h"

#include "MachineCode/MachineCode.h"
#include "PhaseOrdering/Search.h"
#include "Pipeline/Applicability.h"
#include "Pipeline/ErrorCollector.h"
#include "Pipeline/ModuleContents.h"
#include "Pipeline/PassRunner.h"
#include "Pipeline/PipelineReplacement.h"
#include "Support/ModelSession.h"
#include "Support/Options.h"
#include "Support/RegisterModulePass.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <chrono>

using namespace llvm;

namespace MLBridge {
namespace {

constexpr StringLiteral PassName = "mlbridge-phase-ordering";

/// An episode on one module.
class Episode {
public:
  Episode(Module &M, MLModelRunner &Runner, PhaseOrderingSetup Given)
      : M(M), Setup(std::move(Given)),
        Policy(Runner, Setup.Features,
               Setup.Settings.Programs.Actions.size() +
                   (Setup.Settings.WithStop ? 1 : 0)) {}

  /// Runs the episode. Returns false if LLVM's own pipeline should run.
  Expected<bool> run(const SearchOptions &How) {
    if (How.Rollouts != 0)
      return searchFor(How);
    return Setup.Settings.Lookahead != 0 ? decideByOutcome() : decide();
  }
  /// A one-line summary of the episode.
  std::string describe() const;

private:
  Expected<bool> decide();
  Expected<bool> decideByOutcome();
  /// Copies the module to \p Copy and runs an action on the copy.
  Expected<ModuleView> tryOnCopy(std::uint16_t Action, TargetMachine &TM,
                                 std::unique_ptr<Module> &Copy) const;
  Expected<bool> searchFor(const SearchOptions &How);
  Error apply(PassRunner &Passes, std::uint16_t Action);
  /// Applies the chosen sequence to the module itself.
  Error apply(const ActionSequence &Sequence);
  ModuleView viewOf(PassRunner &Passes, const Module &Of) const;
  /// Sends the first request. Its features describe a copy of the module on
  /// which the prologue has run.
  Expected<PhaseOrderingPolicy::Reply> askFirst(TargetMachine &TM);
  EmbeddingKind kind() const {
    return Setup.Settings.Programs.Histograms.value_or(EmbeddingKind::Symbolic);
  }

  Module &M;
  PhaseOrderingSetup Setup;
  PhaseOrderingPolicy Policy;
  ActionSequence Taken;
  std::optional<SearchResult> Searched;
};

} // namespace

Error Episode::apply(PassRunner &Passes, std::uint16_t Action) {
  Taken.push_back(Action);
  return Passes.run(Setup.Settings.Programs.Actions[Action].Pipeline);
}

Error Episode::apply(const ActionSequence &Sequence) {
  Expected<std::unique_ptr<TargetMachine>> TM = createTargetMachine(M);
  if (!TM)
    return TM.takeError();
  PassRunner Passes(M, **TM, EmbeddingKind::Symbolic,
                    Setup.Settings.Programs.Register);
  if (Error E = Passes.run(Setup.Settings.Programs.Actions.prologue()))
    return E;
  for (std::uint16_t Action : Sequence)
    if (Error E = apply(Passes, Action))
      return E;
  return Error::success();
}

ModuleView Episode::viewOf(PassRunner &Passes, const Module &Of) const {
  return {Setup.Settings.Programs.Histograms ? Passes.histogram()
                                             : EntityHistogram(),
          ModuleCounts::of(Of)};
}

Expected<PhaseOrderingPolicy::Reply> Episode::askFirst(TargetMachine &TM) {
  std::unique_ptr<Module> Copy = CloneModule(M);
  PassRunner Passes(*Copy, TM, kind(), Setup.Settings.Programs.Register);
  if (Error E = Passes.run(Setup.Settings.Programs.Actions.prologue()))
    return E;
  return Policy.ask(viewOf(Passes, *Copy), Taken);
}

Expected<bool> Episode::decide() {
  const ActionSpace &Actions = Setup.Settings.Programs.Actions;
  Expected<std::unique_ptr<TargetMachine>> TM = createTargetMachine(M);
  if (!TM)
    return TM.takeError();
  // Do not change the module before the first reply. Most failures occur at the
  // first request, and LLVM's pipeline must then run on the unchanged module.
  Expected<PhaseOrderingPolicy::Reply> Given = askFirst(**TM);
  PassRunner Passes(M, **TM, kind(), Setup.Settings.Programs.Register);
  bool IsFirst = true;
  for (;;) {
    if (Given.code() == ErrorCode::Deferred)
      return false;
    if (!Given)
      return Given.takeError();
    if (std::exchange(IsFirst, false))
      if (Error E = Passes.run(Actions.prologue()))
        return E;
    if (Error E = Policy.tell(Given->Action))
      return E;
    if (Given->Action >= Actions.size())
      return true;
    if (Error E = apply(Passes, static_cast<std::uint16_t>(Given->Action)))
      return E;
    if (Taken.size() >= Setup.Settings.Steps)
      return true;
    Given = Policy.ask(viewOf(Passes, M), Taken);
  }
}

Expected<bool> Episode::searchFor(const SearchOptions &How) {
  Setup.Settings.Programs.Reward = *RewardFunction::parse("text-size");
  Expected<std::unique_ptr<Program>> Of =
      Program::create(M, Setup.Settings.Programs);
  if (!Of)
    return Of.takeError();
  Expected<SearchResult> Found = search(**Of, Policy, Setup.Settings, How);
  if (Found.code() == ErrorCode::Deferred)
    return false;
  if (!Found)
    return Found.takeError();
  Searched = *Found;
  if (!Found->Sequence)
    return false;

  if (Error E = apply(*Found->Sequence))
    return E;
  return true;
}

/// True if remarks of passes are enabled.
static bool hasRemarks(LLVMContext &Context) {
  return Context.getDiagHandlerPtr()->isAnyRemarkEnabled() ||
         Context.getLLVMRemarkStreamer();
}

Expected<bool> Episode::decideByOutcome() {
  Expected<std::unique_ptr<TargetMachine>> TM = createTargetMachine(M);
  if (!TM)
    return TM.takeError();
  // Leave the module unchanged until an action has been chosen.
  std::vector<std::unique_ptr<Module>> Made(Setup.Settings.Lookahead);
  Expected<std::uint16_t> Action = lookAhead(
      [&](std::uint16_t Number) {
        return tryOnCopy(Number, **TM, Made[Number]);
      },
      Setup.Settings.Lookahead, Policy);
  if (Action.code() == ErrorCode::Deferred)
    return false;
  if (!Action)
    return Action.takeError();
  if (Error E = Policy.tell(*Action))
    return E;
  if (hasRemarks(M.getContext())) {
    // Passes emit remarks when they run. Therefore, run the chosen action
    // again, on the module itself, so that only its remarks are emitted.
    if (Error E = apply({*Action}))
      return E;
    return true;
  }
  replaceContents(M, *Made[*Action]);
  Taken.push_back(*Action);
  return true;
}

Expected<ModuleView> Episode::tryOnCopy(std::uint16_t Action, TargetMachine &TM,
                                        std::unique_ptr<Module> &Copy) const {
  const ProgramSettings &Settings = Setup.Settings.Programs;
  ErrorScope Errors(M.getContext());
  Copy = CloneModule(M);
  PassRunner Passes(*Copy, TM, kind(), Settings.Register);
  if (Error E = Passes.run(Settings.Actions.prologue()))
    return E;
  if (Error E = Passes.run(Settings.Actions[Action].Pipeline))
    return E;
  std::string Problem = Errors.take();
  if (raw_string_ostream OS(Problem);
      Problem.empty() && Settings.Verify && !verifyModule(*Copy, &OS))
    Problem.clear();
  if (!Problem.empty())
    return Error(ErrorCode::Malformed,
                 ("action '" + withoutControls(Settings.Actions[Action].Name) +
                  "': " + Problem));
  return viewOf(Passes, *Copy);
}

std::string Episode::describe() const {
  std::string Text;
  raw_string_ostream OS(Text);
  OS << "asked=" << Policy.asked() << " actions=" << Taken.size() << " [";
  interleave(
      Taken, OS,
      [&](std::uint16_t Action) {
        OS << withoutControls(Setup.Settings.Programs.Actions[Action].Name);
      },
      " ");
  OS << "]";
  if (Searched) {
    OS << " rollouts=" << Searched->Rollouts << " text=" << Searched->TextSize
       << " stock=" << Searched->StockTextSize;
    if (Searched->Failures != 0)
      OS << " failures=" << Searched->Failures;
  }
  return Text;
}

/// Prints a one-line remark about \p M for a reason other than a failed model.
/// \p Text states which step the plug-in omits and what happens instead.
static void remark(const Module &M, const Twine &Text) {
  if (phaseOrderingSpec() != "none")
    printLine("remark: " + ModelSession::prefix(PassName, M) + Text);
}

/// Returns the options of the search. The search is disabled if the code that
/// it would measure is not the final code.
static SearchOptions searchOptionsFor(const Module &M,
                                      const StockPipeline &Stock) {
  const SearchOptions How = searchOptions();
  if (How.Rollouts == 0)
    return How;
  const StringRef Why = Stock.isBeforeLink() ? "the linker generates the code"
                                             : whyNotMeasured(M);
  if (Why.empty())
    return How;
  remark(M, "a search cannot measure the final code: " + Why +
                "; the model decides alone");
  return {};
}

bool runEpisode(Module &M, const StockPipeline &Stock, StringRef WhyNot,
                const RegisterInside &Register) {
  // Do not load the model for a module without code.
  if (all_of(M, [](const Function &F) { return F.isDeclaration(); }))
    return false;
  if (WhyNot.empty())
    WhyNot = whyNotReplaced(M);
  if (!WhyNot.empty()) {
    remark(M, WhyNot + "; using LLVM's own pipeline");
    return false;
  }
  std::unique_ptr<ModelSession> Session =
      ModelSession::open(PassName, phaseOrderingSpec(), M);
  if (!Session)
    return false;
  const auto Start = std::chrono::steady_clock::now();
  Session->runner().switchContext(
      (PassName + ":" + M.getModuleIdentifier()).str());
  auto Run = [&]() -> Expected<bool> {
    Expected<PhaseOrderingContract> Trained =
        PhaseOrderingContract::of(Session->runner());
    if (!Trained)
      return Trained.takeError();
    Expected<PhaseOrderingSetup> Setup =
        PhaseOrderingSetup::fromOptions(*Trained);
    if (!Setup)
      return Setup.takeError();
    Setup->Settings.Programs.Stock = Stock;
    Setup->Settings.Programs.Register = Register;
    Episode Current(M, Session->runner(), std::move(*Setup));
    Expected<bool> Done = Current.run(searchOptionsFor(M, Stock));
    if (printStatistics()) {
      const std::chrono::duration<double, std::milli> Time =
          std::chrono::steady_clock::now() - Start;
      std::string Line;
      raw_string_ostream(Line)
          << ModelSession::prefix(PassName, M) << Current.describe()
          << " time=" << format("%.1f", Time.count()) << "ms";
      printLine(Line);
    }
    return Done;
  };
  Expected<bool> Done = Run();
  if (Done)
    return *Done;
  Session->fail(Done.takeError());
  return false;
}

namespace {

/// An episode as a separate pass.
class PhaseOrderingPass : public PassInfoMixin<PhaseOrderingPass> {
public:
  explicit PhaseOrderingPass(RegisterInsideOf Register) : Register(Register) {}
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM) {
    const RegisterInside Inside = registerInside(Register, M, MAM);
    if (phaseOrderingSpec().empty())
      M.getContext().emitError(PassName +
                               ": no model; use -mlbridge-phase-ordering=SPEC");
    else if (!runEpisode(M, {}, /*WhyNot=*/"", Inside))
      runOz(M, Inside);
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }

private:
  static void runOz(Module &M, const RegisterInside &Inside) {
    Expected<std::unique_ptr<TargetMachine>> TM = createTargetMachine(M);
    if (TM)
      PassRunner(M, **TM, EmbeddingKind::Symbolic, Inside).run(StockPipeline());
    else
      M.getContext().emitError(PassName + ": " + TM.takeError().str());
  }

  RegisterInsideOf Register;
};

} // namespace

void registerPhaseOrderingPass(PassBuilder &PB, RegisterInsideOf Register) {
  registerModulePass(PB, PassName, PhaseOrderingPass(Register));
}

void registerPhaseOrdering(PassBuilder &PB, RegisterInsideOf Register) {
  if (!phaseOrderingSpec().empty())
    replacePipelines(PB, [=](Module &M, ModuleAnalysisManager &MAM,
                             const StockPipeline &Stock, StringRef WhyNot) {
      return runEpisode(M, Stock, WhyNot, registerInside(Register, M, MAM));
    });
}

} // namespace MLBridge
