//===- SizeEnvironment.cpp - Trains the inliner for size ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Episode sends the inliner's requests to the trainer.
///
//===----------------------------------------------------------------------===//

#include "Size/SizeEnvironment.h"

#include "Inliner/CallFeatures.h"
#include "Inliner/InlineAdvisorSource.h"
#include "Inliner/Inliner.h"
#include "Pipeline/ReadModule.h"
#include "Size/DecisionTrial.h"
#include "Size/SizeSearch.h"
#include "Support/FileCache.h"
#include "Support/Options.h"
#include "Support/ReadFile.h"
#include "Support/RegisterModulePass.h"
#include "Support/ResetOptions.h"

#include "MLCompilerBridge/Training/SteppedEnvironment.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace llvm;

namespace MLBridge {
namespace {

constexpr StringLiteral EnvironmentName = "mlbridge-size-environment";

cl::opt<unsigned> KeptProgramsOpt(
    "mlbridge-size-programs", cl::cat(optionCategory()), cl::value_desc("n"),
    cl::init(16),
    cl::desc("Number of programs that mlbridge-size-environment keeps in "
             "memory (default: 16)"));

/// The trainer's options for an episode.
struct EpisodeFiles {
  std::string Module, CalleeFiles;

  static Expected<EpisodeFiles> parse(StringRef JSON);
};

/// A program, and the result of LLVM's own decisions.
struct SizedProgram {
  TrialProgram Trials;
  TrialResult Stock;
};

/// Decides about calls as the trainer does, until the episode is over.
class Episode final : public CallDecider {
public:
  Episode(SteppedEnvironment &Trainer, std::string Module)
      : Trainer(Trainer), Module(std::move(Module)) {}

  /// Ends the episode with the linked code \p Text.
  void end(const TrialResult &Stock, LinkedText Text);

  // CallDecider
  void beginRun(const FeatureSet &Features) override;
  bool excludes(const CallBase &Call) const override { return areApart(Call); }
  std::optional<bool> decide(const CallBase &Call, const FeatureSet &Features,
                             bool Default) override;

private:
  /// A feature without data.
  struct Feature {
    std::string Name;
    TensorView Type;
  };

  void refuse(Error Why) {
    IsOver = true;
    Trainer.failEpisode(std::move(Why));
  }
  json::Object describe(const CallSite &Site) const;
  /// Returns the part of the reward that each decision has earned.
  json::Array credits(const TrialResult &Stock) const;

  SteppedEnvironment &Trainer;
  const std::string Module;
  /// True if the trainer has left the episode or has received an error.
  bool IsOver = false;
  std::vector<Feature> Observed;
  /// The data of the last observation: as many zeros as the longest feature.
  std::vector<std::uint64_t> Zeros;
  /// The decisions so far and, at the end, the code.
  TrialResult Made;
};

} // namespace

static std::string textOf(json::Object Value) {
  std::string Text;
  raw_string_ostream(Text) << json::Value(std::move(Value));
  return Text;
}

Expected<EpisodeFiles> EpisodeFiles::parse(StringRef JSON) {
  EpisodeFiles Result;
  Error Failure =
      parseResetOptions(JSON, [&](StringRef Key, const json::Value &Value) {
        if (Key == "module")
          return readFileName(Key, Value, Result.Module);
        if (Key == "callee_files")
          return readFileName(Key, Value, Result.CalleeFiles);
        return invalidResetOptions("expected module and callee_files, found '" +
                                   Key + "'");
      });
  if (Failure)
    return Failure;
  if (Result.Module.empty())
    return invalidResetOptions(
        "expected {\"module\": FILE, ...}, found no module");
  return Result;
}

void Episode::beginRun(const FeatureSet &Features) {
  Observed.clear();
  std::size_t Longest = 0;
  for (const TensorView &One : Features.tensors()) {
    Observed.push_back({std::string(One.Name), One});
    Longest = std::max(Longest, One.NumBytes);
  }
  Zeros.assign(divideCeil(Longest, sizeof(std::uint64_t)), 0);
}

json::Object Episode::describe(const CallSite &Site) const {
  return json::Object{{"module", json::fixUTF8(Module)},
                      {"callee", json::fixUTF8(Site.CalleeInFile)},
                      {"caller", json::fixUTF8(Site.CallerInFile)},
                      {"location", json::fixUTF8(Site.Location)},
                      {"default", Site.Default}};
}

std::optional<bool> Episode::decide(const CallBase &Call,
                                    const FeatureSet &Features, bool Default) {
  if (IsOver)
    return std::nullopt;
  CallSite Site = callSiteOf(Call, Default);
  const Advice *Action = Trainer.act([&](FeatureSet &Into) {
    for (const TensorView &One : Features.tensors())
      Into.set(One.Name, One);
    Trainer.setInfo(textOf(describe(Site)));
  });
  if (!Action) {
    IsOver = true;
    return std::nullopt;
  }
  Expected<std::int64_t> Choice = Action->get<std::int64_t>();
  if (!Choice) {
    refuse(Choice.takeError());
    return std::nullopt;
  }
  if (*Choice != 0 && *Choice != 1) {
    refuse({ErrorCode::InvalidArgument,
            "action: expected 0 (no inlining) or 1 (inlining), found " +
                std::to_string(*Choice)});
    return std::nullopt;
  }
  Site.Decision = *Choice != 0;
  Made.Sites.push_back(std::move(Site));
  return *Choice != 0;
}

json::Array Episode::credits(const TrialResult &Stock) const {
  std::vector<Flip> Flips;
  for (std::size_t Index = 0; Index < Made.Sites.size(); ++Index)
    if (Made.Sites[Index].Decision != Made.Sites[Index].Default)
      Flips.push_back({{Index}});
  // The flips lead back to LLVM's own decisions, so their changes are the bytes
  // that the trainer's decisions have saved.
  attributeChanges(Made, Stock, Flips);
  std::vector<double> Bytes(Made.Sites.size());
  for (const Flip &One : Flips)
    Bytes[One.Sites.front()] = One.Change;
  json::Array Result;
  Result.reserve(Bytes.size());
  for (const double One : Bytes)
    Result.push_back(One / static_cast<double>(Stock.Text.Bytes));
  return Result;
}

void Episode::end(const TrialResult &Stock, LinkedText Text) {
  Made.Text = std::move(Text);
  const auto Before = static_cast<double>(Stock.Text.Bytes);
  const auto After = static_cast<double>(Made.Text.Bytes);
  json::Object Info{{"module", json::fixUTF8(Module)},
                    {"text_size", Made.Text.Bytes},
                    {"stock_text_size", Stock.Text.Bytes},
                    {"decisions", Made.Sites.size()},
                    {"credits", credits(Stock)}};
  Trainer.endEpisode((Before - After) / Before,
                     [&](FeatureSet &Into) {
                       for (Feature &One : Observed) {
                         One.Type.Data = Zeros.data();
                         Into.copy(One.Name, One.Type);
                       }
                     },
                     textOf(std::move(Info)));
}

/// Reads a program, and optimises it with LLVM's own decisions.
static Expected<std::unique_ptr<SizedProgram>> load(StringRef Path) {
  Expected<std::unique_ptr<MemoryBuffer>> File = readModuleFile(Path);
  if (!File)
    return File.takeError();
  LLVMContext Context;
  Expected<std::unique_ptr<Module>> M =
      parseModule((*File)->getMemBufferRef(), Context);
  if (!M)
    return M.takeError();
  // Require locations, because they show which functions are from one file.
  if (!(*M)->getNamedMetadata("llvm.dbg.cu"))
    return Error(ErrorCode::InvalidArgument,
                 ("module '" + Path +
                  "': expected calls with locations, found none; compile with "
                  "-Rpass=none -fdebug-info-for-profiling")
                     .str());
  const Function *Main = (*M)->getFunction("main");
  Expected<TrialProgram> Trials = TrialProgram::create(
      **M, /*KeepsExported=*/!Main || Main->isDeclaration());
  if (!Trials)
    return Trials.takeError();
  auto Result = std::make_unique<SizedProgram>(
      SizedProgram{std::move(*Trials), TrialResult()});
  Expected<TrialResult> Stock = Result->Trials.run(DecisionTable(), "");
  if (!Stock)
    return Stock.takeError();
  if (Stock->Text.Bytes == 0)
    return Error(ErrorCode::InvalidArgument,
                 ("module '" + Path + "': expected code, found none").str());
  Result->Stock = std::move(*Stock);
  return Result;
}

/// Runs one episode. The trainer receives the error that this function returns.
static Error play(SteppedEnvironment &Trainer,
                  FileCache<SizedProgram> &Programs) {
  Expected<EpisodeFiles> Files = EpisodeFiles::parse(Trainer.options());
  if (!Files)
    return Files.takeError();
  CalleeFiles Counts;
  if (!Files->CalleeFiles.empty()) {
    Expected<CalleeFiles> Read = CalleeFiles::read(Files->CalleeFiles);
    if (!Read)
      return inFile(Files->CalleeFiles, Read.takeError());
    Counts = std::move(*Read);
  }
  Expected<SizedProgram *> Found = Programs.get(Files->Module, load);
  if (!Found)
    return Found.takeError();
  Episode Current(Trainer, Files->Module);
  Expected<LinkedText> Text =
      (*Found)->Trials.run(sourceOf(Current, std::move(Counts)), "");
  if (!Text)
    return Text.takeError();
  Current.end((*Found)->Stock, std::move(*Text));
  return Error::success();
}

static Error serve() {
  Expected<std::string> Spec = environmentSpec();
  if (!Spec)
    return Spec.takeError();
  SteppedEnvironment Trainer;
  if (Error E = Trainer.serve(*Spec))
    return E;
  FileCache<SizedProgram> Programs(KeptProgramsOpt);
  while (Trainer.waitForReset())
    if (Error E = play(Trainer, Programs))
      Trainer.failEpisode(std::move(E));
  return Trainer.result();
}

namespace {

class SizeEnvironmentPass : public PassInfoMixin<SizeEnvironmentPass> {
public:
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    if (Error E = serve())
      M.getContext().emitError(EnvironmentName + ": " + Twine(E.str()));
    return PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

} // namespace

void registerSizeEnvironment(PassBuilder &PB) {
  registerModulePass(PB, EnvironmentName, SizeEnvironmentPass());
}

} // namespace MLBridge
