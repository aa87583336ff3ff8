//===- PhaseOrderingOptions.cpp - Phase ordering's command line -----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the options and reads the metadata of models.
///
//===----------------------------------------------------------------------===//

#include "PhaseOrdering/PhaseOrderingOptions.h"

#include "IR2Vec/IR2VecOptions.h"
#include "Support/ModelSpecParser.h"
#include "Support/Options.h"
#include "Support/ParseJSON.h"
#include "Support/SizeOption.h"

#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <climits>

using namespace llvm;

namespace MLBridge {
namespace {

cl::opt<std::string, false, ModelSpecParser> PhaseOrderingOpt(
    "mlbridge-phase-ordering", cl::cat(optionCategory()),
    cl::value_desc("spec"),
    cl::desc("Let the model at <spec> decide which passes run, instead of the "
             "pipeline of -Os or -Oz"));

cl::opt<unsigned> SearchOpt(
    "mlbridge-search", cl::cat(optionCategory()), cl::value_desc("k"),
    cl::desc(
        "Try <k> sequences of passes in the order of the model's "
        "preference, and LLVM's own pipeline, and keep the smallest code"));

cl::opt<unsigned>
    SearchBudgetOpt("mlbridge-search-budget", cl::cat(optionCategory()),
                    cl::value_desc("ms"),
                    cl::desc("Start no new sequence after this time"));

cl::opt<unsigned>
    SearchSeedOpt("mlbridge-search-seed", cl::cat(optionCategory()),
                  cl::value_desc("n"),
                  cl::desc("Random seed of a search (default 0)"));

cl::opt<std::string> ActionsOpt(
    "mlbridge-phase-ordering-actions", cl::cat(optionCategory()),
    cl::value_desc("name or file"), cl::init("oz"),
    cl::desc("The action space: oz (default), odg, passes, or a JSON file"));

cl::opt<bool> StopOpt("mlbridge-phase-ordering-stop", cl::cat(optionCategory()),
                      cl::desc("Add a last action that ends the episode"));

cl::opt<unsigned>
    StepsOpt("mlbridge-phase-ordering-steps", cl::cat(optionCategory()),
             cl::value_desc("n"), cl::init(15),
             cl::desc("Maximum number of actions in an episode (default 15)"));

cl::opt<unsigned> LookaheadOpt(
    "mlbridge-phase-ordering-lookahead", cl::cat(optionCategory()),
    cl::value_desc("n"),
    cl::desc("If an episode is one action: try the first <n> actions without "
             "generating code, and take the one whose result the model scores "
             "highest (default 0: the model chooses without trying)"));

cl::opt<std::string> ObservationOpt(
    "mlbridge-phase-ordering-observation", cl::cat(optionCategory()),
    cl::value_desc("features"), cl::init("histogram,counts,step,actions"),
    cl::desc("The features of an observation: a list of histogram, embedding, "
             "counts, step and actions (default: all but embedding, which "
             "needs -mlbridge-ir2vec-vocabulary)"));

cl::opt<std::string> RewardOpt(
    "mlbridge-phase-ordering-reward", cl::cat(optionCategory()),
    cl::value_desc("measure:weight,..."), cl::init("text-size:10"),
    cl::desc("The reward: a list of the measures text-size, instructions, "
             "mca-cycles and weighted-cycles with weights, or none (default "
             "text-size:10)"));

enum class Relative { Oz, Initial };
cl::opt<Relative>
    ReferenceOpt("mlbridge-phase-ordering-reference", cl::cat(optionCategory()),
                 cl::init(Relative::Oz),
                 cl::desc("Reference for relative changes:"),
                 cl::values(clEnumValN(Relative::Oz, "oz",
                                       "the program after -Oz (default)"),
                            clEnumValN(Relative::Initial, "initial",
                                       "the program before the first action")));

cl::opt<std::string>
    CPUOpt("mlbridge-phase-ordering-mca-cpu", cl::cat(optionCategory()),
           cl::value_desc("cpu"),
           cl::desc("The CPU of mca-cycles and weighted-cycles (default: the "
                    "code's target CPU)"));

cl::opt<bool> VerifyOpt(
    "mlbridge-phase-ordering-verify", cl::cat(optionCategory()),
#ifdef NDEBUG
    cl::init(false),
#else
    cl::init(true),
#endif
    cl::desc("Verify the module after each action (default in debug builds)"));

cl::opt<unsigned>
    CacheOpt("mlbridge-phase-ordering-cache", cl::cat(optionCategory()),
             cl::value_desc("n"), cl::init(16384),
             cl::desc("Number of cached states of a program (default 16384)"));

cl::opt<unsigned>
    ProgramsOpt("mlbridge-phase-ordering-programs", cl::cat(optionCategory()),
                cl::value_desc("n"), cl::init(16),
                cl::desc("Number of programs kept in memory (default 16)"));

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

/// Reads the string at \p Key in \p Object, and stores the element of \p Values
/// whose name is this string. \p NameOf returns the name of an element.
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
  // Ignore keys of later versions.
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

static Error conflict(StringRef Option, const Twine &Given,
                      const Twine &Trained, StringRef Model) {
  return {ErrorCode::SchemaMismatch,
          ("-" + Option + ": expected " + Trained + ", with which " + Model +
           " was trained, found " + Given)
              .str()};
}

/// Returns the option's value, or the trained value if the option was not
/// given. Returns an error if the two values differ and the option was given.
template <typename T, typename Opt>
static Expected<T> resolve(const Opt &Option, const std::optional<T> &Trained,
                           StringRef Model) {
  const T &Given = Option.getValue();
  if (!Trained || Given == *Trained)
    return Given;
  if (Option.getNumOccurrences() == 0)
    return *Trained;
  return conflict(Option.ArgStr, Twine(Given), Twine(*Trained), Model);
}

static Expected<ActionSpace>
resolveActions(const PhaseOrderingContract &Trained) {
  if (Trained.Actions && ActionsOpt.getNumOccurrences() == 0)
    return *Trained.Actions;
  Expected<ActionSpace> Given = ActionSpace::load(ActionsOpt);
  if (Given && Trained.Actions && !Given->isEquivalentTo(*Trained.Actions))
    return conflict(ActionsOpt.ArgStr, Twine(Given->name()),
                    "the space '" + Trained.Actions->name() + "'",
                    Trained.Model);
  return Given;
}

static Expected<EmbeddingOptions>
resolveEmbedding(const PhaseOrderingContract &Trained) {
  EmbeddingOptions Result = ir2vecOptions();
  const IR2VecOptionsGiven IsGiven = ir2vecOptionsGiven();
  if (IsGiven.Kind && Trained.Kind && Result.Kind != *Trained.Kind)
    return conflict("mlbridge-ir2vec-kind", embeddingKindName(Result.Kind),
                    embeddingKindName(*Trained.Kind), Trained.Model);
  if (IsGiven.Normalization && Trained.Normalize &&
      Result.Normalize != *Trained.Normalize)
    return conflict("mlbridge-ir2vec-normalization",
                    normalizationName(Result.Normalize),
                    normalizationName(*Trained.Normalize), Trained.Model);
  Result.Kind = Trained.Kind.value_or(Result.Kind);
  Result.Normalize = Trained.Normalize.value_or(Result.Normalize);
  return Result;
}

Expected<PhaseOrderingSetup>
PhaseOrderingSetup::fromOptions(const PhaseOrderingContract &Trained) {
  Expected<ActionSpace> Actions = resolveActions(Trained);
  if (!Actions)
    return Actions.takeError();
  Expected<bool> Stop = resolve(StopOpt, Trained.Stop, Trained.Model);
  if (!Stop)
    return Stop.takeError();
  Expected<unsigned> Steps = resolve(StepsOpt, Trained.Steps, Trained.Model);
  if (!Steps)
    return Steps.takeError();
  Expected<unsigned> Lookahead =
      resolve(LookaheadOpt, Trained.Lookahead, Trained.Model);
  if (!Lookahead)
    return Lookahead.takeError();
  if (*Lookahead != 0 && (std::max(1U, *Steps) != 1 || *Stop))
    return Error(ErrorCode::InvalidArgument,
                 "lookahead: expected episodes of one action "
                 "(-mlbridge-phase-ordering-steps=1) without a stop action, "
                 "found " +
                     std::to_string(*Steps) + " actions" +
                     (*Stop ? " and a stop action" : ""));
  if (*Lookahead > Actions->size())
    return Error(ErrorCode::InvalidArgument,
                 "lookahead: expected at most the " +
                     std::to_string(Actions->size()) +
                     " actions of the space '" + Actions->name() + "', found " +
                     std::to_string(*Lookahead));
  Expected<std::string> Names =
      resolve(ObservationOpt, Trained.Observation, Trained.Model);
  if (!Names)
    return Names.takeError();
  Expected<RewardFunction> Reward = RewardFunction::parse(RewardOpt);
  if (!Reward)
    return Reward.takeError();
  Expected<EmbeddingOptions> Embedding = resolveEmbedding(Trained);
  if (!Embedding)
    return Embedding.takeError();
  Expected<Observation> Features = Observation::create(
      *Names, Actions->size(), ir2vecVocabulary(), *Embedding);
  if (!Features)
    return Features.takeError();
  if (Trained.Vocabulary && Features->vocabulary())
    if (Error E =
            Features->vocabulary()->check(*Trained.Vocabulary, Trained.Model))
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

StringRef phaseOrderingSpec() {
  constexpr StringLiteral ForSize = "builtin:phase_ordering_oz";
  if (!PhaseOrderingOpt.empty() || sizeModelSpec().empty())
    return PhaseOrderingOpt;
  // A build without built-in models does not know the spec.
  return runnerFactory().check(ForSize) ? StringRef() : StringRef(ForSize);
}

SearchOptions searchOptions() {
  return {SearchOpt, SearchBudgetOpt, SearchSeedOpt};
}

} // namespace MLBridge
