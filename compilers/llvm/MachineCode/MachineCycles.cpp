//===- MachineCycles.cpp - Measures cycles with llvm-mca ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Disassembles each function or block and runs it once through llvm-mca's
/// simulated pipeline.
///
//===----------------------------------------------------------------------===//

#include "MachineCode/MachineCode.h"

#include "llvm/ADT/SCCIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInstrAnalysis.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/MCA/Context.h"
#include "llvm/MCA/CustomBehaviour.h"
#include "llvm/MCA/InstrBuilder.h"
#include "llvm/MCA/Pipeline.h"
#include "llvm/MCA/SourceMgr.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"

#include <map>
#include <mutex>
#include <set>

using namespace llvm;

namespace MLBridge {

/// The number of cycles that is assumed for each call. Calls are not simulated,
/// because llvm-mca does not know the callee and prints a warning to stderr for
/// each call.
static constexpr double CyclesOfCall = 10;

namespace {

/// Simulates code of one target. The members are LLVM's descriptions of the
/// target. The members refer to each other.
class Simulator {
public:
  /// If \p AssumesNoAlias is false, each load waits for the stores before it.
  static Expected<std::unique_ptr<Simulator>>
  create(const Triple &Machine, StringRef CPU, bool AssumesNoAlias);
  /// Returns the cycles of \p Code, which is simulated without the code around
  /// it.
  Expected<double> cycles(ArrayRef<std::uint8_t> Code);

private:
  explicit Simulator(bool AssumesNoAlias) : AssumesNoAlias(AssumesNoAlias) {}

  const bool AssumesNoAlias;
  MCTargetOptions Options;
  std::unique_ptr<MCRegisterInfo> Registers;
  std::unique_ptr<MCAsmInfo> Assembly;
  std::unique_ptr<MCInstrInfo> Instructions;
  std::unique_ptr<MCSubtargetInfo> Subtarget;
  std::unique_ptr<MCInstrAnalysis> Analysis;
  std::unique_ptr<MCContext> Context;
  std::unique_ptr<MCDisassembler> Disassembler;
};

} // namespace

static void initializeTargets() {
  static std::once_flag Once;
  std::call_once(Once, [] {
    InitializeAllTargetInfos();
    InitializeAllTargetMCs();
    InitializeAllDisassemblers();
    InitializeAllTargetMCAs();
  });
}

Expected<std::unique_ptr<Simulator>>
Simulator::create(const Triple &Machine, StringRef CPU, bool AssumesNoAlias) {
  initializeTargets();
  auto Unsupported = [&](const Twine &Why) {
    return Error(ErrorCode::Unsupported, ("mca-cycles: CPU '" + CPU + "' of '" +
                                          Machine.str() + "': " + Why)
                                             .str());
  };
  std::string Why;
  const llvm::Target *Found = TargetRegistry::lookupTarget(Machine, Why);
  if (!Found)
    return Unsupported(Why);

  std::unique_ptr<Simulator> S(new Simulator(AssumesNoAlias));
  S->Registers.reset(Found->createMCRegInfo(Machine));
  if (S->Registers)
    S->Assembly.reset(
        Found->createMCAsmInfo(*S->Registers, Machine, S->Options));
  S->Instructions.reset(Found->createMCInstrInfo());
  S->Subtarget.reset(Found->createMCSubtargetInfo(Machine, CPU, ""));
  if (!S->Registers || !S->Assembly || !S->Instructions || !S->Subtarget)
    return Unsupported("LLVM has no description of its machine code");
  // Return an error here, because LLVM would print a warning and simulate
  // another CPU.
  if (!S->Subtarget->isCPUStringValid(CPU) ||
      !S->Subtarget->getSchedModel().hasInstrSchedModel())
    return Unsupported("LLVM has no scheduling model for it; compile for "
                       "another CPU, or use "
                       "-mlbridge-phase-ordering-mca-cpu in phase ordering");
  S->Analysis.reset(Found->createMCInstrAnalysis(S->Instructions.get()));
  S->Context = std::make_unique<MCContext>(
      Machine, S->Assembly.get(), S->Registers.get(), S->Subtarget.get());
  S->Disassembler.reset(
      Found->createMCDisassembler(*S->Subtarget, *S->Context));
  if (!S->Disassembler)
    return Unsupported("LLVM has no disassembler for it");
  return S;
}

Expected<double> Simulator::cycles(ArrayRef<std::uint8_t> Code) {
  mca::InstrumentManager Instruments(*Subtarget, *Instructions);
  constexpr unsigned CallLatency = 100; // Unused, because calls are skipped.
  mca::InstrBuilder Builder(*Subtarget, *Instructions, *Registers,
                            Analysis.get(), Instruments, CallLatency);
  const SmallVector<mca::Instrument *> None;
  SmallVector<std::unique_ptr<mca::Instruction>> Straight;
  unsigned Calls = 0;
  for (std::uint64_t At = 0; At < Code.size();) {
    MCInst Instruction;
    std::uint64_t Size = 0;
    const bool IsKnown =
        Disassembler->getInstruction(Instruction, Size, Code.slice(At), At,
                                     nulls()) == MCDisassembler::Success;
    At += std::max<std::uint64_t>(Size, 1);
    if (!IsKnown)
      continue;
    const MCInstrDesc &About = Instructions->get(Instruction.getOpcode());
    if (About.isCall())
      ++Calls;
    if (About.isCall() || About.isReturn())
      continue;
    auto Simulated = Builder.createInstruction(Instruction, None);
    if (Simulated)
      Straight.push_back(std::move(*Simulated));
    else // Instructions without a scheduling model cost nothing.
      handleAllErrors(Simulated.takeError(), [](const ErrorInfoBase &) {});
  }
  const double OfCalls = CyclesOfCall * Calls;
  if (Straight.empty())
    return OfCalls;

  mca::CircularSourceMgr Source(Straight, /*Iterations=*/1);
  mca::CustomBehaviour Behaviour(*Subtarget, Source, *Instructions);
  mca::Context Machine(*Registers, *Subtarget);
  const mca::PipelineOptions Settings(0, 0, 0, 0, 0, 0, AssumesNoAlias);
  std::unique_ptr<mca::Pipeline> Simulation =
      Machine.createDefaultPipeline(Settings, Source, Behaviour);
  auto Result = Simulation->run();
  if (!Result)
    return Error(ErrorCode::Unsupported,
                 "mca-cycles: " + toString(Result.takeError()));
  return *Result + OfCalls;
}

/// Parses \p Object. The result refers to \p Object.
static Expected<std::unique_ptr<object::ELFObjectFileBase>>
readELF(const ObjectCode &Object) {
  auto File = object::ObjectFile::createObjectFile(
      MemoryBufferRef(StringRef(Object.data(), Object.size()), "object"));
  if (!File)
    return Error(ErrorCode::Unsupported,
                 "mca-cycles: " + toString(File.takeError()));
  if (!isa<object::ELFObjectFileBase>(**File))
    return Error(ErrorCode::Unsupported,
                 "mca-cycles: expected an ELF object, found " +
                     (*File)->getFileFormatName().str());
  return std::unique_ptr<object::ELFObjectFileBase>(
      cast<object::ELFObjectFileBase>(File->release()));
}

Expected<double> machineCycles(const ObjectCode &Object, const Triple &Target,
                               StringRef CPU) {
  Expected<std::unique_ptr<object::ELFObjectFileBase>> ELF = readELF(Object);
  if (!ELF)
    return ELF.takeError();
  Expected<std::unique_ptr<Simulator>> Machine =
      Simulator::create(Target, CPU, /*AssumesNoAlias=*/true);
  if (!Machine)
    return Machine.takeError();

  double Sum = 0;
  // Remember each function's section and offset, so that a function with
  // several names is counted once.
  std::set<std::pair<std::uint64_t, std::uint64_t>> Counted;
  for (const object::ELFSymbolRef Symbol : (*ELF)->symbols()) {
    auto Type = expectedToOptional(Symbol.getType());
    auto Section = expectedToOptional(Symbol.getSection());
    auto Start = expectedToOptional(Symbol.getValue());
    if (!Type || *Type != object::SymbolRef::ST_Function || !Section ||
        *Section == (*ELF)->section_end() || !Start ||
        !Counted.emplace((*Section)->getIndex(), *Start).second)
      continue;
    auto Bytes = expectedToOptional((*Section)->getContents());
    if (!Bytes)
      continue;
    Expected<double> Cycles = (*Machine)->cycles(
        arrayRefFromStringRef(Bytes->substr(*Start, Symbol.getSize())));
    if (!Cycles)
      return Cycles.takeError();
    Sum += *Cycles;
  }
  return Sum;
}

static Expected<std::unique_ptr<Simulator>> simulatorOf(const Function &F) {
  // Make each reload wait for its spill. Otherwise, spills would shorten chains
  // of dependences, and so would seem to save cycles.
  return Simulator::create(F.getParent()->getTargetTriple(),
                           F.getFnAttribute("target-cpu").getValueAsString(),
                           /*AssumesNoAlias=*/false);
}

Error checkCyclesOf(const Function &F) {
  Expected<std::unique_ptr<Simulator>> Machine = simulatorOf(F);
  return Machine ? Error::success() : Machine.takeError();
}

/// Returns the sum of the blocks' cycles, weighted by the blocks' frequencies.
/// \p Code is the contents of the section.
static Expected<double> cyclesOfBlocks(StringRef Code, Simulator &Machine,
                                       const object::BBAddrMap &Map,
                                       const object::PGOAnalysisMap &Profile) {
  double Sum = 0;
  std::size_t Index = 0;
  for (const object::BBAddrMap::BBRangeEntry &Range : Map.getBBRanges())
    for (const object::BBAddrMap::BBEntry &Block : Range.BBEntries) {
      Expected<double> Cycles = Machine.cycles(arrayRefFromStringRef(
          Code.substr(Range.BaseAddress + Block.Offset, Block.Size)));
      if (!Cycles)
        return Cycles.takeError();
      Sum +=
          *Cycles * double(Profile.BBEntries[Index++].BlockFreq.getFrequency());
    }
  return Sum / double(Profile.BBEntries.front().BlockFreq.getFrequency());
}

/// Calls \p Visit with the symbol and the cycles of each function whose blocks
/// are in the object, if \p IsWanted returns true for the symbol.
static Error visitFunctions(const ObjectCode &Object, Simulator &Machine,
                            function_ref<bool(StringRef)> IsWanted,
                            function_ref<void(StringRef, double)> Visit) {
  Expected<std::unique_ptr<object::ELFObjectFileBase>> ELF = readELF(Object);
  if (!ELF)
    return ELF.takeError();
  struct Mapped {
    std::vector<object::PGOAnalysisMap> Profiles;
    std::optional<std::vector<object::BBAddrMap>> Maps;
  };
  std::map<std::uint64_t, Mapped> BySection;
  for (const object::ELFSymbolRef Symbol : (*ELF)->symbols()) {
    auto Section = expectedToOptional(Symbol.getSection());
    auto Start = expectedToOptional(Symbol.getValue());
    auto Name = expectedToOptional(Symbol.getName());
    if (!Name || !IsWanted(*Name) || !Section ||
        *Section == (*ELF)->section_end() || !Start)
      continue;
    const std::uint64_t Index = (*Section)->getIndex();
    auto [At, IsNew] = BySection.try_emplace(Index);
    auto &[Profiles, Maps] = At->second;
    if (IsNew)
      Maps = expectedToOptional((*ELF)->readBBAddrMap(Index, &Profiles));
    auto Code = expectedToOptional((*Section)->getContents());
    if (!Code || !Maps)
      continue;
    for (const auto &[Map, Profile] : zip_equal(*Maps, Profiles)) {
      if (Map.getFunctionAddress() != *Start || Profile.BBEntries.empty() ||
          Profile.BBEntries.size() != Map.getNumBBEntries())
        continue;
      Expected<double> Cycles = cyclesOfBlocks(*Code, Machine, Map, Profile);
      if (!Cycles)
        return Cycles.takeError();
      Visit(*Name, *Cycles);
    }
  }
  return Error::success();
}

Expected<double> cyclesOfFunction(const ObjectCode &Object, const Function &F) {
  Expected<std::unique_ptr<Simulator>> Machine = simulatorOf(F);
  if (!Machine)
    return Machine.takeError();
  const StringRef Wanted = GlobalValue::dropLLVMManglingEscape(F.getName());
  std::optional<double> Found;
  if (Error E = visitFunctions(
          Object, **Machine, [&](StringRef Name) { return Name == Wanted; },
          [&](StringRef, double Cycles) { Found = Cycles; }))
    return E;
  if (Found)
    return *Found;
  return Error(
      ErrorCode::Unsupported,
      ("mca-cycles: the object has no blocks of '" + Wanted + "'").str());
}

StringMap<double> functionRuns(Module &M) {
  // Limit the results, because LLVM only guesses the numbers of iterations, and
  // the guesses multiply in chains of calls.
  constexpr double Most = 1e9;
  DenseMap<const Function *, double> Runs;
  for (const Function &F : M)
    Runs[&F] = F.hasLocalLinkage() && !F.hasAddressTaken() ? 0 : 1;
  CallGraph Calls(M);
  std::vector<std::vector<CallGraphNode *>> Components;
  for (auto At = scc_begin(&Calls); !At.isAtEnd(); ++At)
    Components.push_back(*At);
  // The list has callees first, so visit it in reverse to have callers first.
  for (const std::vector<CallGraphNode *> &Component : reverse(Components)) {
    double OfComponent = 0;
    for (const CallGraphNode *Node : Component)
      OfComponent =
          std::min(Most, OfComponent + Runs.lookup(Node->getFunction()));
    for (const CallGraphNode *Node : Component) {
      Function *F = Node->getFunction();
      if (!F || F->isDeclaration())
        continue;
      Runs[F] = OfComponent;
      const DominatorTree Dominators(*F);
      const LoopInfo Loops(Dominators);
      const BranchProbabilityInfo Branches(*F, Loops);
      const BlockFrequencyInfo Frequencies(*F, Branches, Loops);
      const auto Entry = double(Frequencies.getEntryFreq().getFrequency());
      for (const Instruction &I : instructions(*F)) {
        const auto *Call = dyn_cast<CallBase>(&I);
        const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
        if (!Callee || Callee->isDeclaration() ||
            is_contained(Component, Calls[Callee]))
          continue;
        const auto Here =
            double(Frequencies.getBlockFreq(I.getParent()).getFrequency());
        double &OfCallee = Runs[Callee];
        OfCallee = std::min(Most, OfCallee + OfComponent * Here / Entry);
      }
    }
  }
  StringMap<double> ByName;
  for (const Function &F : M)
    if (!F.isDeclaration())
      ByName[GlobalValue::dropLLVMManglingEscape(F.getName())] = Runs[&F];
  return ByName;
}

Expected<double> weightedCycles(const ObjectCode &Object, const Triple &Target,
                                StringRef CPU, const StringMap<double> &Runs) {
  Expected<std::unique_ptr<Simulator>> Machine =
      Simulator::create(Target, CPU, /*AssumesNoAlias=*/false);
  if (!Machine)
    return Machine.takeError();
  double Sum = 0;
  if (Error E = visitFunctions(
          Object, **Machine,
          [&](StringRef Name) { return Runs.contains(Name); },
          [&](StringRef Name, double Cycles) {
            Sum += Runs.lookup(Name) * Cycles;
          }))
    return E;
  return Sum;
}

} // namespace MLBridge
