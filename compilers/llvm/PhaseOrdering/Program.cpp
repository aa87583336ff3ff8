//===- Program.cpp - A module and the results of actions on it ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Computes states on demand. If the state of a sequence is cached, no passes
/// run. Otherwise, the passes of all missing actions run.
///
//===----------------------------------------------------------------------===//

#include "PhaseOrdering/Program.h"

#include "MachineCode/MachineCode.h"
#include "Pipeline/ErrorCollector.h"
#include "Pipeline/ModuleCopy.h"
#include "Pipeline/PassRunner.h"
#include "Pipeline/ReadModule.h"

#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/xxhash.h"
#include "llvm/Target/TargetMachine.h"

#include <chrono>

using namespace llvm;

namespace MLBridge {
namespace {

/// Adds the duration of its scope to a sum.
class Stopwatch {
public:
  explicit Stopwatch(double &Milliseconds) : Into(Milliseconds) {}
  Stopwatch(const Stopwatch &) = delete;
  Stopwatch &operator=(const Stopwatch &) = delete;
  ~Stopwatch() {
    Into += std::chrono::duration<double, std::milli>(
                std::chrono::steady_clock::now() - Start)
                .count();
  }

private:
  double &Into;
  const std::chrono::steady_clock::time_point Start =
      std::chrono::steady_clock::now();
};

} // namespace

/// A module on which passes run.
struct Program::Work {
  explicit Work(std::unique_ptr<ErrorCollector> Collector)
      : Diagnostics(*Collector) {
    Context.setDiagnosticHandler(std::move(Collector));
  }
  /// Returns the errors that passes have reported to the context since the last
  /// call.
  Error takeDiagnostics() {
    std::string Text = Diagnostics.take();
    if (Text.empty())
      return Error::success();
    return {ErrorCode::Malformed, M->getModuleIdentifier() + ": " + Text};
  }

  LLVMContext Context;
  /// Owned by the context.
  ErrorCollector &Diagnostics;
  std::unique_ptr<Module> M;
  std::unique_ptr<PassRunner> Passes;
  /// The actions that have been applied.
  ActionSequence Done;
};

Program::Program(std::unique_ptr<MemoryBuffer> IR,
                 const ProgramSettings &Settings)
    : Settings(Settings), IR(std::move(IR)),
      Name(this->IR->getBufferIdentifier()), CPU(Settings.CPU) {}

Program::~Program() = default;

/// Returns the target CPU of the first function that has one.
static StringRef targetCPU(const Module &M) {
  for (const Function &F : M)
    if (F.hasFnAttribute("target-cpu"))
      return F.getFnAttribute("target-cpu").getValueAsString();
  return "";
}

Expected<std::unique_ptr<Program>>
Program::load(StringRef Path, const ProgramSettings &Settings) {
  Expected<std::unique_ptr<MemoryBuffer>> File = readModuleFile(Path);
  if (!File)
    return File.takeError();
  return create(std::move(*File), Settings);
}

Expected<std::unique_ptr<Program>>
Program::create(const Module &M, const ProgramSettings &Settings) {
  return create(
      MemoryBuffer::getMemBufferCopy(bitcodeOf(M), M.getModuleIdentifier()),
      Settings);
}

Expected<std::unique_ptr<Program>>
Program::create(std::unique_ptr<MemoryBuffer> IR,
                const ProgramSettings &Settings) {
  std::unique_ptr<Program> Result(new Program(std::move(IR), Settings));
  Expected<std::unique_ptr<Work>> First = Result->startEpisode();
  if (!First)
    return First.takeError();
  Result->Current = std::move(*First);
  return Result;
}

Expected<std::unique_ptr<Program::Work>> Program::start(EmbeddingKind Kind) {
  auto Begun = std::make_unique<Work>(std::make_unique<ErrorCollector>());
  Expected<std::unique_ptr<Module>> Read =
      parseModule(IR->getMemBufferRef(), Begun->Context);
  if (!Read)
    return Read.takeError();
  Begun->M = std::move(*Read);
  Module &M = *Begun->M;
  StripDebugInfo(M);
  if (!TM) {
    Expected<std::unique_ptr<TargetMachine>> Machine = createTargetMachine(M);
    if (!Machine)
      return Machine.takeError();
    TM = std::move(*Machine);
    if (CPU.empty())
      CPU = targetCPU(M).str();
  }
  if (M.getDataLayoutStr().empty())
    M.setDataLayout(TM->createDataLayout());
  Begun->Passes = std::make_unique<PassRunner>(M, *TM, Kind, Settings.Register);
  return Begun;
}

Expected<std::unique_ptr<Program::Work>> Program::startEpisode() {
  Expected<std::unique_ptr<Work>> Begun =
      start(Settings.Histograms.value_or(EmbeddingKind::Symbolic));
  if (!Begun)
    return Begun;
  if (Error E = (*Begun)->Passes->run(Settings.Actions.prologue()))
    return E;
  if (Error E = check(**Begun, "the prologue"))
    return E;
  if (Error E = (*Begun)->takeDiagnostics())
    return E;
  return Begun;
}

Error Program::advance(const ActionSequence &Sequence) {
  const bool IsOnTheWay =
      Current && Current->Done.size() <= Sequence.size() &&
      std::equal(Current->Done.begin(), Current->Done.end(), Sequence.begin());
  if (!IsOnTheWay) {
    Expected<std::unique_ptr<Work>> Begun = startEpisode();
    if (!Begun)
      return Begun.takeError();
    Current = std::move(*Begun);
  }
  Stopwatch Clock(Spent.Passes);
  while (Current->Done.size() < Sequence.size()) {
    const std::uint16_t Next = Sequence[Current->Done.size()];
    const ActionSpace::Action &Action = Settings.Actions[Next];
    Error E = Current->Passes->run(Action.Pipeline);
    if (!E)
      E = check(*Current, "action " + Twine(Next) + " '" + Action.Name + "'");
    if (!E)
      E = Current->takeDiagnostics();
    if (E) {
      Current.reset();
      return E;
    }
    Current->Done.push_back(Next);
  }
  return Error::success();
}

Error Program::check(Work &At, const Twine &Culprit) const {
  if (!Settings.Verify)
    return Error::success();
  std::string Problem;
  raw_string_ostream OS(Problem);
  if (verifyModule(*At.M, &OS))
    return {ErrorCode::Malformed,
            (Twine(Name) + ": " + Culprit +
             ": LLVM's verifier rejects the result of its passes: " +
             StringRef(Problem).trim())
                .str()};
  if (Settings.Histograms &&
      At.Passes->histogram() !=
          EntityHistogram::of(*At.M, *Settings.Histograms))
    return {ErrorCode::Malformed,
            (Twine(Name) + ": " + Culprit +
             ": expected the histogram of the current IR, found an outdated "
             "one: a pass changed a function but reported no change")
                .str()};
  return Error::success();
}

ModuleView Program::currentView() {
  return {Settings.Histograms ? Current->Passes->histogram()
                              : EntityHistogram(),
          ModuleCounts::of(*Current->M)};
}

Expected<ModuleView> Program::view(const ActionSequence &Sequence) {
  if (auto Known = States.find(Sequence); Known != States.end())
    return Known->second.View;
  if (Error E = advance(Sequence))
    return E;
  return currentView();
}

Expected<Program::State> Program::state(const ActionSequence &Sequence) {
  if (auto Known = States.find(Sequence); Known != States.end())
    return Known->second;
  if (Error E = advance(Sequence))
    return E;

  State Found;
  Found.View = currentView();
  Found.Sizes.Instructions = Found.View.Counts.instructions();
  if (Settings.Reward.needsObject()) {
    Stopwatch Clock(Spent.Emission);
    const std::string Bitcode = bitcodeOf(*Current->M);
    Found.Hash = xxh3_64bits(Bitcode);
    auto Known = ByHash.find(*Found.Hash);
    if (Known != ByHash.end())
      Found.Sizes = Known->second;
    else if (Error E = measure(Bitcode, Found.Sizes))
      return E;
  }

  if (Settings.CachedStates != 0) {
    // Clear the whole cache if it is full. This is simple and happens rarely.
    if (States.size() >= Settings.CachedStates) {
      States.clear();
      ByHash.clear();
    }
    States.emplace(Sequence, Found);
    if (Found.Hash)
      ByHash.emplace(*Found.Hash, Found.Sizes);
  }
  return Found;
}

Expected<Measurements> Program::stock() {
  if (!Stock) {
    Expected<std::unique_ptr<Work>> Other = start(EmbeddingKind::Symbolic);
    if (!Other)
      return Other.takeError();
    (*Other)->Passes->run(Settings.Stock);
    Measurements Found;
    Found.Instructions = ModuleCounts::of(*(*Other)->M).instructions();
    if (Error E = measure(bitcodeOf(*(*Other)->M), Found))
      return E;
    Stock = Found;
  }
  return *Stock;
}

Expected<ObjectCode> Program::emit(StringRef Bitcode, StringMap<double> *Runs) {
  Expected<std::unique_ptr<ModuleCopy>> Copy = ModuleCopy::read(Bitcode, Name);
  if (!Copy)
    return Copy.takeError();
  if (Runs)
    *Runs = functionRuns((*Copy)->module());
  Expected<ObjectCode> Object =
      emitObject((*Copy)->module(), /*MapsBlocks=*/Runs != nullptr);
  if (const std::string Problem = (*Copy)->takeErrors();
      Object && !Problem.empty())
    return Error(ErrorCode::Malformed, Name + ": " + Problem);
  return Object;
}

Error Program::measure(StringRef Bitcode, Measurements &Into) {
  using Measure = RewardFunction::Measure;
  if (!Settings.Reward.needsObject())
    return Error::success();
  const bool IsWeighted = Settings.Reward.needs(Measure::WeightedCycles);
  StringMap<double> Runs;
  Expected<ObjectCode> Object = emit(Bitcode, IsWeighted ? &Runs : nullptr);
  if (!Object)
    return Object.takeError();
  if (Settings.Reward.needs(Measure::TextSize)) {
    Expected<std::uint64_t> Size = textSize(*Object);
    if (!Size)
      return Size.takeError();
    Into.TextSize = *Size;
  }
  if (Settings.Reward.needs(Measure::Cycles)) {
    Expected<double> Cycles =
        machineCycles(*Object, TM->getTargetTriple(), CPU);
    if (!Cycles)
      return Cycles.takeError();
    Into.Cycles = *Cycles;
  }
  if (IsWeighted) {
    Expected<double> Cycles =
        weightedCycles(*Object, TM->getTargetTriple(), CPU, Runs);
    if (!Cycles)
      return Cycles.takeError();
    Into.WeightedCycles = *Cycles;
  }
  return Error::success();
}

Error Program::write(const ActionSequence &Sequence, StringRef Path) {
  if (Error E = advance(Sequence))
    return E;
  std::string Bytes = bitcodeOf(*Current->M);
  if (Path.ends_with(".o")) {
    Expected<ObjectCode> Object = emit(Bytes);
    if (!Object)
      return Object.takeError();
    Bytes.assign(Object->begin(), Object->end());
  }
  std::error_code Status;
  raw_fd_ostream OS(Path, Status);
  if (!Status) {
    OS << Bytes;
    OS.close();
    Status = OS.error();
    OS.clear_error();
  }
  if (Status)
    return {ErrorCode::System,
            ("cannot write '" + Path + "': " + Status.message()).str()};
  return Error::success();
}

Program::Times Program::takeTimes() { return std::exchange(Spent, {}); }

} // namespace MLBridge
