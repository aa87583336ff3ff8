//===- SizeSearchPass.cpp - The pass that searches for size ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads the options of the search and writes its results.
///
//===----------------------------------------------------------------------===//

#include "Size/SizeSearchPass.h"

#include "Inliner/InlineDecisions.h"
#include "PhaseOrdering/ActionSpace.h"
#include "Size/SizeDecisions.h"
#include "Size/SizeSearch.h"
#include "Support/AppendToFile.h"
#include "Support/ModelSession.h"
#include "Support/Options.h"
#include "Support/ReadFile.h"
#include "Support/RegisterModulePass.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/AddDiscriminators.h"

using namespace llvm;

namespace MLBridge {
namespace {

cl::opt<std::string> OutputOpt(
    "mlbridge-size-output", cl::cat(optionCategory()), cl::value_desc("file"),
    cl::desc("Write the decisions of mlbridge-size-search to <file>"));
cl::opt<std::string>
    StartOpt("mlbridge-size-start", cl::cat(optionCategory()),
             cl::value_desc("file"),
             cl::desc("Start mlbridge-size-search with the decisions in "
                      "<file>"));
cl::opt<std::string> FlipsOpt(
    "mlbridge-size-flips", cl::cat(optionCategory()), cl::value_desc("file"),
    cl::desc("Append each decision that mlbridge-size-search reverses, and the "
             "change in bytes, to <file>, as lines of JSON"));
cl::opt<double>
    SecondsOpt("mlbridge-size-seconds", cl::cat(optionCategory()),
               cl::value_desc("s"), cl::init(SizeSearchOptions().Seconds),
               cl::desc("CPU time of mlbridge-size-search (default: 1800 s)"));
cl::opt<unsigned>
    BatchOpt("mlbridge-size-batch", cl::cat(optionCategory()),
             cl::value_desc("n"), cl::init(SizeSearchOptions().Batch),
             cl::desc("Reverse at most <n> decisions in a trial of "
                      "mlbridge-size-search (default: 160)"));
cl::opt<unsigned> SeedOpt("mlbridge-size-seed", cl::cat(optionCategory()),
                          cl::init(1), cl::value_desc("n"),
                          cl::desc("Seed of mlbridge-size-search"));
cl::opt<std::string> PipelinesOpt(
    "mlbridge-size-pipelines", cl::cat(optionCategory()),
    cl::value_desc("file"),
    cl::desc("Let mlbridge-size-search also try the pipelines in <file>, an "
             "action space in JSON, in place of the pipeline of -Oz"));
cl::opt<bool> SharedOpt(
    "mlbridge-size-shared", cl::cat(optionCategory()),
    cl::desc("The module of mlbridge-size-search is a shared library, which "
             "keeps all exported functions"));

class SizeSearchPass : public PassInfoMixin<SizeSearchPass> {
public:
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM) {
    if (Error E = search(M, MAM))
      M.getContext().emitError(ModelSession::prefix("mlbridge-size-search", M) +
                               E.str());
    return PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }

private:
  static Error search(Module &M, ModuleAnalysisManager &MAM);
};

} // namespace

/// Returns an error if \p Path names something other than a regular file.
/// writeToOutput() would replace it, even a device.
static Error expectFile(StringRef Path) {
  if (Path == "-" || Path == "/dev/null" || !sys::fs::exists(Path) ||
      sys::fs::is_regular_file(Path))
    return Error::success();
  return {ErrorCode::InvalidArgument,
          ("cannot write to " + Path + ": expected a regular file").str()};
}

/// Writes the pipeline and the decisions that differ from LLVM's.
static Error write(const SizeSearch &Search, StringRef Path) {
  if (Error E = expectFile(Path))
    return E;
  llvm::Error Failure = writeToOutput(Path, [&](raw_ostream &OS) {
    if (const NamedPipeline &Chosen = Search.pipeline(); !Chosen.Passes.empty())
      OS << SizeDecisions::definitionLine(Chosen.Name, Chosen.Passes) << '\n'
         << SizeDecisions::pipelineLine(SizeDecisions::Others, Chosen.Name)
         << '\n';
    StringSet<> Written;
    for (const CallSite &Site : Search.best().Sites)
      if (Search.decisions().contains(Site.key()) &&
          Site.Decision != Site.Default && Written.insert(Site.key()).second)
        OS << decisionLine(Site.CalleeInFile, Site.CallerInFile, Site.Location,
                           Site.Decision)
           << '\n';
    return llvm::Error::success();
  });
  if (Failure)
    return {ErrorCode::System, "cannot write to " + Path.str() + ": " +
                                   toString(std::move(Failure))};
  return Error::success();
}

/// Appends a line for each flip to the file of -mlbridge-size-flips.
static Error logFlips(const TrialResult &Before, ArrayRef<Flip> Flips) {
  std::string Lines;
  raw_string_ostream OS(Lines);
  for (const Flip &One : Flips) {
    json::OStream Line(OS);
    Line.object([&] {
      Line.attributeArray("sites", [&] {
        for (const std::size_t Index : One.Sites) {
          const CallSite &Site = Before.Sites[Index];
          Line.object([&] {
            Line.attribute("callee", Site.CalleeInFile);
            Line.attribute("caller", Site.CallerInFile);
            Line.attribute("location", Site.Location);
            Line.attribute("default", Site.Default);
            Line.attribute("decision", !Site.Decision);
          });
        }
      });
      Line.attribute("change", One.Change);
    });
    OS << '\n';
  }
  return appendToFile(FlipsOpt, Lines);
}

namespace {
/// The decisions with which a search starts.
struct StartingPoint {
  DecisionTable Table;
  NamedPipeline Pipeline;
};
} // namespace

static Expected<StartingPoint> readStart(StringRef Path, Module &M,
                                         ModuleAnalysisManager &MAM) {
  StartingPoint Result;
  if (Path.empty())
    return Result;
  Expected<InlineDecisions> Inlining = InlineDecisions::read(Path);
  if (!Inlining)
    return inFile(Path, Inlining.takeError());
  // The locations of decisions contain discriminators.
  createModuleToFunctionPassAdaptor(AddDiscriminatorsPass()).run(M, MAM);
  Inlining->moveTo(M);
  Result.Table = Inlining->table();
  Expected<SizeDecisions> Files = SizeDecisions::read(Path);
  if (!Files)
    return inFile(Path, Files.takeError());
  const auto [Name, Passes] = Files->pipelineFor(SizeDecisions::Others);
  Result.Pipeline = {Name.str(), Passes.str()};
  return Result;
}

/// Reads the pipelines to try. An empty list means the pipeline of clang -Oz.
static Expected<std::vector<NamedPipeline>> readPipelines(StringRef Path) {
  std::vector<NamedPipeline> Result;
  if (Path.empty())
    return Result;
  Expected<ActionSpace> Space = ActionSpace::load(Path);
  if (!Space)
    return Space.takeError();
  for (std::size_t Index = 0; Index < Space->size(); ++Index) {
    const ActionSpace::Action &Action = (*Space)[Index];
    Result.push_back(
        {Action.Name, Space->prologue().empty()
                          ? Action.Pipeline
                          : Space->prologue() + "," + Action.Pipeline});
  }
  return Result;
}

Error SizeSearchPass::search(Module &M, ModuleAnalysisManager &MAM) {
  if (OutputOpt.empty())
    return {
        ErrorCode::InvalidArgument,
        "expected -mlbridge-size-output=FILE, which receives the decisions"};
  Expected<StartingPoint> Start = readStart(StartOpt, M, MAM);
  if (!Start)
    return Start.takeError();
  Expected<std::vector<NamedPipeline>> Pipelines = readPipelines(PipelinesOpt);
  if (!Pipelines)
    return Pipelines.takeError();
  // Report a file that cannot be written before the search.
  if (Error E = expectFile(OutputOpt))
    return E;
  if (!FlipsOpt.empty())
    if (Error E = appendToFile(FlipsOpt, ""))
      return E;
  Expected<TrialProgram> Program = TrialProgram::create(M, SharedOpt);
  if (!Program)
    return Program.takeError();
  const std::string Prefix = ModelSession::prefix("mlbridge-size-search", M);
  std::uint64_t Written = UINT64_MAX;
  SizeSearch Search(
      *Program, {SecondsOpt, BatchOpt, SeedOpt, std::move(*Pipelines)},
      [&](const SizeSearch::Progress &State) {
        printLine(Prefix + formatv("trials={0} seconds={1:f1} sites={2} "
                                   "stock={3} best={4}",
                                   State.Trials, State.Seconds, State.Sites,
                                   State.Stock, State.Best)
                               .str());
        // Write each improvement, so that an interrupted search can continue.
        // Ignore failures, because the last write reports them.
        if (std::exchange(Written, std::min(Written, State.Best)) > State.Best)
          static_cast<void>(write(Search, OutputOpt));
      },
      [&](const TrialResult &Before, ArrayRef<Flip> Tried) {
        return FlipsOpt.empty() ? Error::success() : logFlips(Before, Tried);
      });
  if (Error E = Search.run(Start->Table, Start->Pipeline))
    return E;
  return write(Search, OutputOpt);
}

void registerSizeSearch(PassBuilder &PB) {
  registerModulePass(PB, "mlbridge-size-search", SizeSearchPass());
}

} // namespace MLBridge
