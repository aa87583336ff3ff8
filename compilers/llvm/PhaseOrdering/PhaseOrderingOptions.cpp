//===- PhaseOrderingOptions.cpp - Phase ordering's command line -----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The options themselves.
///
//===----------------------------------------------------------------------===//

#include "PhaseOrdering/PhaseOrderingOptions.h"

#include "ModelSpecParser.h"
#include "Options.h"
#include "ParseJSON.h"

#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <climits>

using namespace llvm;

namespace MLBridge {
namespace {

cl::opt<std::string> EnvironmentOpt(
    "mlbridge-environment", cl::cat(optionCategory()), cl::value_desc("spec"),
    cl::desc("Where the trainer is that drives an environment, such as "
             "pipe:/tmp/trainer (default: the variable MLBRIDGE_SPEC)"));

cl::opt<std::string, false, ModelSpecParser> PhaseOrderingOpt(
    "mlbridge-phase-ordering", cl::cat(optionCategory()),
    cl::value_desc("spec"),
    cl::desc("Let the model that <spec> names decide which passes run, in the "
             "place of the pipeline of -Os or -Oz"));

cl::opt<unsigned> SearchOpt(
    "mlbridge-search", cl::cat(optionCategory()), cl::value_desc("k"),
    cl::desc("Try <k> sequences of passes as the model prefers them, and "
             "LLVM's own pipeline, and keep the smallest code"));

cl::opt<unsigned>
    SearchBudgetOpt("mlbridge-search-budget", cl::cat(optionCategory()),
                    cl::value_desc("ms"),
                    cl::desc("Begin no other sequence when this time is over"));

cl::opt<unsigned>
    SearchSeedOpt("mlbridge-search-seed", cl::cat(optionCategory()),
                  cl::value_desc("n"),
                  cl::desc("Where a search draws at random, begin with <n>"));

cl::opt<std::string> ActionsOpt(
    "mlbridge-phase-ordering-actions", cl::cat(optionCategory()),
    cl::value_desc("name or file"), cl::init("oz"),
    cl::desc("The action space: oz (default), odg, passes, or a JSON file"));

cl::opt<bool>
    StopOpt("mlbridge-phase-ordering-stop", cl::cat(optionCategory()),
            cl::desc("Have one action more, the last, which ends the episode"));

cl::opt<unsigned>
    StepsOpt("mlbridge-phase-ordering-steps", cl::cat(optionCategory()),
             cl::value_desc("n"), cl::init(15),
             cl::desc("How many actions an episode may have (default 15)"));

cl::opt<unsigned> LookaheadOpt(
    "mlbridge-phase-ordering-lookahead", cl::cat(optionCategory()),
    cl::value_desc("n"),
    cl::desc("Where an episode is one action: try the first <n> without "
             "machine code, and take the one whose outcome the model values "
             "most (default 0: it chooses before)"));

cl::opt<std::string> ObservationOpt(
    "mlbridge-phase-ordering-observation", cl::cat(optionCategory()),
    cl::value_desc("features"), cl::init("histogram,counts,step,actions"),
    cl::desc("What a model sees: a list of histogram, embedding, counts, step "
             "and actions (default: all but embedding, which needs "
             "-mlbridge-ir2vec-vocabulary)"));

cl::opt<std::string> RewardOpt(
    "mlbridge-phase-ordering-reward", cl::cat(optionCategory()),
    cl::value_desc("measure:weight,..."), cl::init("text-size:10"),
    cl::desc("What an action is worth: measures with weights, of text-size, "
             "instructions and mca-cycles, or none (default text-size:10)"));

enum class Relative { Oz, Initial };
cl::opt<Relative> ReferenceOpt(
    "mlbridge-phase-ordering-reference", cl::cat(optionCategory()),
    cl::init(Relative::Oz), cl::desc("What changes are relative to:"),
    cl::values(clEnumValN(Relative::Oz, "oz",
                          "what -Oz makes of the program (default)"),
               clEnumValN(Relative::Initial, "initial",
                          "the program before the first action")));

cl::opt<std::string>
    CPUOpt("mlbridge-phase-ordering-mca-cpu", cl::cat(optionCategory()),
           cl::value_desc("cpu"),
           cl::desc("The CPU of mca-cycles (default: what the code is for)"));

cl::opt<bool> VerifyOpt(
    "mlbridge-phase-ordering-verify", cl::cat(optionCategory()),
#ifdef NDEBUG
    cl::init(false),
#else
    cl::init(true),
#endif
    cl::desc("Verify the module after each action (default in debug builds)"));

cl::opt<unsigned> CacheOpt(
    "mlbridge-phase-ordering-cache", cl::cat(optionCategory()),
    cl::value_desc("n"), cl::init(16384),
    cl::desc("How many states are remembered of a program (default 16384)"));

cl::opt<unsigned>
    ProgramsOpt("mlbridge-phase-ordering-programs", cl::cat(optionCategory()),
                cl::value_desc("n"), cl::init(16),
                cl::desc("How many programs are kept in memory (default 16)"));

} // namespace

static Error malformed(StringRef Model, const Twine &Why) {
  return {ErrorCode::Malformed,
          (Model + ": its metadata 'mlbridge.phase-ordering': " + Why).str()};
}

static Error readActions(const json::Value &Value, StringRef Model,
                         PhaseOrderingContract &Into) {
  std::string Text;
  raw_string_ostream(Text) << Value;
  std::optional<StringRef> Name = Value.getAsString();
  Expected<ActionSpace> Space =
      Name ? ActionSpace::load(*Name) : ActionSpace::parse(Text, Model);
  if (!Space)
    return Space.takeError();
  Into.Actions = std::move(*Space);
  return Error::success();
}

/// One of \p Values by the name that \p NameOf gives it.
template <typename T>
static Error readName(const json::Object &Object, StringRef Key,
                      std::initializer_list<T> Values, StringRef (*NameOf)(T),
                      StringRef Model, std::optional<T> &Into) {
  const json::Value *Found = Object.get(Key);
  if (!Found)
    return Error::success();
  std::string Names;
  for (T Value : Values) {
    if (Found->getAsString() == NameOf(Value))
      Into = Value;
    Names += (Names.empty() ? "" : ", ") + NameOf(Value).str();
  }
  return Into ? Error::success()
              : malformed(Model, "'embedding': '" + Key +
                                     "': expected one of " + Names);
}

static Error readEmbedding(const json::Value &Value, StringRef Model,
                           PhaseOrderingContract &Into) {
  const json::Object *Object = Value.getAsObject();
  if (!Object)
    return malformed(Model, "'embedding': expected a JSON object");
  if (Error E = readName(*Object, "kind",
                         {EmbeddingKind::Symbolic, EmbeddingKind::FlowAware,
                          EmbeddingKind::LLVMFlowAware},
                         embeddingKindName, Model, Into.Kind))
    return E;
  return readName(*Object, "normalization",
                  {Normalization::None, Normalization::PerInstruction,
                   Normalization::Logarithmic},
                  normalizationName, Model, Into.Normalize);
}

static Error readEntry(StringRef Key, const json::Value &Value, StringRef Model,
                       PhaseOrderingContract &Into) {
  if (Key == "actions")
    return readActions(Value, Model, Into);
  if (Key == "embedding")
    return readEmbedding(Value, Model, Into);
  if (Key == "stop") {
    Into.Stop = Value.getAsBoolean();
    if (!Into.Stop)
      return malformed(Model, "'stop': expected true or false");
  } else if (Key == "steps") {
    std::optional<std::int64_t> Steps = Value.getAsInteger();
    if (!Steps || *Steps < 1 || *Steps > INT_MAX)
      return malformed(Model, "'steps': expected a number above 0");
    Into.Steps = static_cast<unsigned>(*Steps);
  } else if (Key == "lookahead") {
    std::optional<std::int64_t> Actions = Value.getAsInteger();
    if (!Actions || *Actions < 0 || *Actions > INT_MAX)
      return malformed(Model, "'lookahead': expected a number of actions");
    Into.Lookahead = static_cast<unsigned>(*Actions);
  } else if (Key == "observation") {
    std::optional<StringRef> Text = Value.getAsString();
    if (!Text)
      return malformed(Model, "'observation': expected a list of names");
    Into.Observation = Text->str();
  }
  // What a later version adds is no reason to fail.
  return Error::success();
}

Expected<PhaseOrderingContract>
PhaseOrderingContract::of(MLModelRunner &Runner) {
  PhaseOrderingContract Result;
  Result.Model = Runner.describe();
  Expected<std::optional<std::string>> Vocabulary =
      Runner.metadata("mlbridge.vocabulary");
  if (!Vocabulary)
    return Vocabulary.takeError();
  Result.Vocabulary = std::move(*Vocabulary);
  Expected<std::optional<std::string>> Text =
      Runner.metadata("mlbridge.phase-ordering");
  if (!Text)
    return Text.takeError();
  if (!*Text)
    return Result;
  llvm::Expected<json::Value> Parsed = parseJSON(**Text);
  if (!Parsed)
    return malformed(Result.Model,
                     "expected JSON: " + toString(Parsed.takeError()));
  const json::Object *Object = Parsed->getAsObject();
  if (!Object)
    return malformed(Result.Model, "expected a JSON object");
  for (const auto &[Key, Value] : *Object)
    if (Error E = readEntry(Key, Value, Result.Model, Result))
      return E;
  return Result;
}

static Error otherwise(StringRef Option, const Twine &Given, const Twine &Said,
                       StringRef Model) {
  return {ErrorCode::SchemaMismatch,
          ("-" + Option + ": expected " + Said + ", with which " + Model +
           " was trained, found " + Given)
              .str()};
}

/// The option's value, or what the model says where it was not given.
template <typename T, typename Opt>
static Expected<T> settle(const Opt &Option, const std::optional<T> &Said,
                          StringRef Model) {
  const T &Given = Option.getValue();
  if (!Said || Given == *Said)
    return Given;
  if (Option.getNumOccurrences() == 0)
    return *Said;
  return otherwise(Option.ArgStr, Twine(Given), Twine(*Said), Model);
}

static Expected<ActionSpace> settleActions(const PhaseOrderingContract &Said) {
  if (Said.Actions && ActionsOpt.getNumOccurrences() == 0)
    return *Said.Actions;
  Expected<ActionSpace> Given = ActionSpace::load(ActionsOpt);
  if (Given && Said.Actions && !Given->doesAs(*Said.Actions))
    return otherwise(ActionsOpt.ArgStr, Twine(Given->name()),
                     "the space '" + Said.Actions->name() + "'", Said.Model);
  return Given;
}

static Expected<EmbeddingOptions>
settleEmbedding(const PhaseOrderingContract &Said) {
  EmbeddingOptions Result = ir2vecOptions();
  const IR2VecOptionsGiven IsGiven = ir2vecOptionsGiven();
  if (IsGiven.Kind && Said.Kind && Result.Kind != *Said.Kind)
    return otherwise("mlbridge-ir2vec-kind", embeddingKindName(Result.Kind),
                     embeddingKindName(*Said.Kind), Said.Model);
  if (IsGiven.Normalization && Said.Normalize &&
      Result.Normalize != *Said.Normalize)
    return otherwise("mlbridge-ir2vec-normalization",
                     normalizationName(Result.Normalize),
                     normalizationName(*Said.Normalize), Said.Model);
  Result.Kind = Said.Kind.value_or(Result.Kind);
  Result.Normalize = Said.Normalize.value_or(Result.Normalize);
  return Result;
}

Expected<PhaseOrderingSetup>
PhaseOrderingSetup::fromOptions(const PhaseOrderingContract &Said) {
  Expected<ActionSpace> Actions = settleActions(Said);
  if (!Actions)
    return Actions.takeError();
  Expected<bool> Stop = settle(StopOpt, Said.Stop, Said.Model);
  if (!Stop)
    return Stop.takeError();
  Expected<unsigned> Steps = settle(StepsOpt, Said.Steps, Said.Model);
  if (!Steps)
    return Steps.takeError();
  Expected<unsigned> Lookahead =
      settle(LookaheadOpt, Said.Lookahead, Said.Model);
  if (!Lookahead)
    return Lookahead.takeError();
  if (*Lookahead != 0 && (std::max(1U, *Steps) != 1 || *Stop))
    return Error(ErrorCode::InvalidArgument,
                 "looking ahead: expected episodes of one action, which "
                 "-mlbridge-phase-ordering-steps=1 asks for, and none to stop; "
                 "found " +
                     std::to_string(*Steps) +
                     (*Stop ? " and one to stop" : ""));
  if (*Lookahead > Actions->size())
    return Error(ErrorCode::InvalidArgument,
                 "looking ahead: expected at most the " +
                     std::to_string(Actions->size()) +
                     " actions of the space '" + Actions->name() + "', found " +
                     std::to_string(*Lookahead));
  Expected<std::string> Names =
      settle(ObservationOpt, Said.Observation, Said.Model);
  if (!Names)
    return Names.takeError();
  Expected<RewardFunction> Reward = RewardFunction::parse(RewardOpt);
  if (!Reward)
    return Reward.takeError();
  Expected<EmbeddingOptions> Embedding = settleEmbedding(Said);
  if (!Embedding)
    return Embedding.takeError();
  Expected<Observation> Features = Observation::create(
      *Names, Actions->size(), ir2vecVocabulary(), *Embedding);
  if (!Features)
    return Features.takeError();
  if (Said.Vocabulary && Features->vocabulary())
    if (Error E = Features->vocabulary()->check(*Said.Vocabulary, Said.Model))
      return E;

  std::optional<EmbeddingKind> Histograms;
  if (Features->needsHistogram())
    Histograms = Features->kind();
  PhaseOrderingSettings Settings{.Programs = {.Actions = std::move(*Actions),
                                              .Reward = std::move(*Reward),
                                              .Histograms = Histograms,
                                              .Verify = VerifyOpt,
                                              .CachedStates = CacheOpt,
                                              .CPU = CPUOpt},
                                 .WithStop = *Stop,
                                 .Steps = std::max(1U, *Steps),
                                 .Lookahead = *Lookahead,
                                 .RelativeToInitial =
                                     ReferenceOpt == Relative::Initial,
                                 .KeptPrograms = ProgramsOpt};
  return PhaseOrderingSetup{std::move(Settings), std::move(*Features)};
}

StringRef phaseOrderingSpec() { return PhaseOrderingOpt; }

SearchOptions searchOptions() {
  return {SearchOpt, SearchBudgetOpt, SearchSeedOpt};
}

std::string environmentSpec() {
  if (!EnvironmentOpt.empty())
    return EnvironmentOpt;
  return sys::Process::GetEnv("MLBRIDGE_SPEC").value_or("");
}

} // namespace MLBridge
