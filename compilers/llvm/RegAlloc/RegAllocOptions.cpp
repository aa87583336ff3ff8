//===- RegAllocOptions.cpp - Options of register allocation ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the options.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/RegAllocOptions.h"

#include "RegAlloc/TrialProcess.h"
#include "Support/ModelSpecParser.h"
#include "Support/Options.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"

#include <algorithm>
#include <utility>

using namespace llvm;

namespace MLBridge {
namespace {

cl::opt<FixedPolicy> FixedPolicyOpt(
    "mlbridge-regalloc-policy", cl::cat(optionCategory()),
    cl::init(FixedPolicy::None), cl::Hidden,
    cl::desc("Allocate registers by a policy that is not learned:"),
    cl::values(clEnumValN(FixedPolicy::None, "none",
                          "LLVM's greedy allocator (default)"),
               clEnumValN(FixedPolicy::WeightOrder, "weight",
                          "the heaviest live range first, as -regalloc=basic"),
               clEnumValN(FixedPolicy::FreeColours, "free",
                          "free registers by weight, then greedy"),
               clEnumValN(FixedPolicy::EvictionByWeight, "eviction",
                          "greedy, but the lightest live ranges are evicted"),
               clEnumValN(FixedPolicy::PriorityBySize, "size",
                          "greedy, but the longest live range first"),
               clEnumValN(FixedPolicy::Random, "random",
                          "at random, for tests")));

cl::opt<std::string, false, ModelSpecParser> AllocatorOpt(
    "mlbridge-regalloc", cl::cat(optionCategory()), cl::value_desc("spec"),
    cl::desc("Let the model at <spec> allocate registers; LLVM's greedy "
             "allocator handles the ranges that the model leaves"));

cl::opt<AllocatorForm> FormOpt(
    "mlbridge-regalloc-form", cl::cat(optionCategory()),
    cl::init(AllocatorForm::Question),
    cl::desc("What the model of -mlbridge-regalloc decides:"),
    cl::values(clEnumValN(AllocatorForm::Question, "question",
                          "all preferences of a function at once (default)"),
               clEnumValN(AllocatorForm::Dialogue, "dialogue",
                          "each step, by the agents node, task, colour and "
                          "split")));

cl::opt<std::string, false, ModelSpecParser> EvictionOpt(
    "mlbridge-eviction", cl::cat(optionCategory()), cl::value_desc("spec"),
    cl::desc("Let the model at <spec> decide which live ranges lose their "
             "register in LLVM's greedy allocator"));

cl::opt<std::string, false, ModelSpecParser> PriorityOpt(
    "mlbridge-priority", cl::cat(optionCategory()), cl::value_desc("spec"),
    cl::desc("Let the model at <spec> decide in which order LLVM's greedy "
             "allocator handles live ranges"));

cl::opt<std::string> VocabularyOpt(
    "mlbridge-regalloc-vocabulary", cl::cat(optionCategory()),
    cl::value_desc("file"),
    cl::desc("Describe each instruction to the model of -mlbridge-regalloc by "
             "MIR2Vec, with the vectors in <file>"));
cl::opt<std::string> TripletsOpt(
    "mlbridge-mir2vec-triplets", cl::cat(optionCategory()),
    cl::value_desc("file"),
    cl::desc("Append the triplets of the machine instructions to <file>, to "
             "train a vocabulary of MIR2Vec"));

cl::opt<unsigned> RandomSeedOpt("mlbridge-regalloc-seed",
                                cl::cat(optionCategory()), cl::init(1),
                                cl::Hidden,
                                cl::desc("Seed of the random policy"));
cl::opt<unsigned> RandomSplitOpt(
    "mlbridge-regalloc-random-split", cl::cat(optionCategory()), cl::init(20),
    cl::Hidden, cl::desc("Chance that the random policy splits, in percent"));
cl::opt<unsigned> RandomSpillOpt(
    "mlbridge-regalloc-random-spill", cl::cat(optionCategory()), cl::init(5),
    cl::Hidden, cl::desc("Chance that the random policy spills, in percent"));
cl::opt<unsigned>
    RandomEvictOpt("mlbridge-regalloc-random-evict", cl::cat(optionCategory()),
                   cl::init(10), cl::Hidden,
                   cl::desc("Chance that the random policy evicts although a "
                            "register is free, in percent"));
cl::opt<unsigned> RandomStopOpt(
    "mlbridge-regalloc-random-stop", cl::cat(optionCategory()), cl::init(0),
    cl::Hidden,
    cl::desc("Chance that the random policy leaves the rest of the function to "
             "greedy, per 1000 decisions"));

cl::opt<unsigned> AllocationSearchOpt(
    "mlbridge-regalloc-search", cl::cat(optionCategory()), cl::value_desc("k"),
    cl::init(0),
    cl::desc("Allocate each function by the best of <k> policies, of which "
             "LLVM's greedy allocator is the first"));
cl::opt<unsigned> AllocationSearchBudgetOpt(
    "mlbridge-regalloc-search-budget", cl::cat(optionCategory()),
    cl::value_desc("ms"), cl::init(0),
    cl::desc("Start no further trial of -mlbridge-regalloc-search after <ms> "
             "milliseconds in a module (default: 0, no limit)"));
cl::opt<unsigned> AllocationTrialLimitOpt(
    "mlbridge-regalloc-search-trial-limit", cl::cat(optionCategory()),
    cl::value_desc("ms"),
    cl::init(unsigned(std::chrono::milliseconds(MaxTrialTime).count())),
    cl::desc("End a trial of -mlbridge-regalloc-search after <ms> milliseconds "
             "(default: 20000)"));
cl::opt<bool> AllocationSearchAllOpt(
    "mlbridge-regalloc-search-all", cl::cat(optionCategory()),
    cl::desc("In a search, also try policies that are predicted not to gain"));

cl::opt<std::string>
    FunctionsOpt("mlbridge-regalloc-functions", cl::cat(optionCategory()),
                 cl::value_desc("folder"),
                 cl::desc("The bitcode files whose functions the trainer of "
                          "mlbridge-regalloc-environment allocates"));
cl::opt<unsigned> MaxRangesOpt(
    "mlbridge-regalloc-max-ranges", cl::cat(optionCategory()),
    cl::value_desc("n"), cl::init(0),
    cl::desc("Skip functions with more than <n> live ranges in training "
             "(default: 0, no limit)"));
cl::opt<unsigned> RepeatsOpt(
    "mlbridge-regalloc-repeats", cl::cat(optionCategory()), cl::value_desc("n"),
    cl::init(1),
    cl::desc("Episodes with each function, one after another (default: 1)"));

cl::opt<AllocationMeasure> RewardOpt(
    "mlbridge-regalloc-reward", cl::cat(optionCategory()),
    cl::init(AllocationMeasure::Cost),
    cl::desc("What the trainer of mlbridge-regalloc-environment minimizes:"),
    cl::values(clEnumValN(AllocationMeasure::Cost, "cost",
                          "spills, reloads and copies, weighted by frequency "
                          "(default)"),
               clEnumValN(AllocationMeasure::Cycles, "cycles",
                          "llvm-mca's cycles of all blocks, weighted by "
                          "frequency")));

cl::opt<std::string> AllocationCostsOpt(
    "mlbridge-regalloc-costs", cl::cat(optionCategory()),
    cl::value_desc("file"),
    cl::desc("Append a line of JSON to <file> for each function: the spills, "
             "reloads and copies after register allocation, weighted by the "
             "frequencies of their blocks"));

} // namespace

/// The names of policies in a search.
static constexpr std::pair<StringLiteral, FixedPolicy> FixedNames[] = {
    {"greedy", FixedPolicy::None},
    {"size", FixedPolicy::PriorityBySize},
    {"weight", FixedPolicy::WeightOrder},
    {"eviction", FixedPolicy::EvictionByWeight},
    {"free", FixedPolicy::FreeColours}};

/// Parses the value of -mlbridge-regalloc-try. Returns the error, or an empty
/// string.
static std::string parsePolicy(StringRef Text, PolicyDescription &Result) {
  Result.Name = Text.str();
  bool HasFixed = false;
  SmallVector<StringRef, 2> Parts;
  Text.split(Parts, ';');
  for (StringRef Part : Parts) {
    const auto [Kind, Spec] = Part.split('=');
    const auto *Fixed = find_if(
        FixedNames, [&](const auto &Named) { return Named.first == Part; });
    if (Fixed != std::end(FixedNames)) {
      if (std::exchange(HasFixed, true))
        return ("'" + Text + "' has two fixed policies; use one").str();
      Result.Fixed = Fixed->second;
      continue;
    }
    std::string *Into = StringSwitch<std::string *>(Kind)
                            .Case("allocator", &Result.Allocator)
                            .Case("dialogue", &Result.Allocator)
                            .Case("eviction", &Result.Eviction)
                            .Case("priority", &Result.Priority)
                            .Default(nullptr);
    if (!Into)
      return ("'" + Part +
              "' is not a policy; use greedy, size, weight, eviction, free, "
              "allocator=SPEC, dialogue=SPEC, eviction=SPEC or "
              "priority=SPEC")
          .str();
    if (!Into->empty())
      return ("'" + Text + "' has two models for the same decisions; use one")
          .str();
    if (Error E = runnerFactory().check(Spec))
      return E.message();
    *Into = Spec.str();
    if (Kind == "dialogue")
      Result.Form = AllocatorForm::Dialogue;
  }
  return "";
}

namespace {

struct PolicyParser : cl::parser<std::string> {
  using cl::parser<std::string>::parser;
  bool parse(cl::Option &O, StringRef, StringRef Text, std::string &Value) {
    PolicyDescription Ignored;
    if (const std::string Why = parsePolicy(Text, Ignored); !Why.empty())
      return O.error(Why);
    Value = Text.str();
    return false;
  }
};

cl::list<std::string, bool, PolicyParser> TryOpt(
    "mlbridge-regalloc-try", cl::cat(optionCategory()),
    cl::value_desc("policy"),
    cl::desc("A further policy that -mlbridge-regalloc-search tries, such as "
             "'eviction=SPEC;priority=SPEC'; can be given several times"));

} // namespace

ArrayRef<PolicyDescription> fixedPolicies() {
  static const std::vector<PolicyDescription> Policies = [] {
    std::vector<PolicyDescription> Result;
    for (const auto &[Name, Fixed] : FixedNames) {
      PolicyDescription &Added = Result.emplace_back();
      Added.Name = Name.str();
      Added.Fixed = Fixed;
    }
    return Result;
  }();
  return Policies;
}

PolicyDescription givenPolicy() {
  return {"given",     FixedPolicyOpt, EvictionOpt,
          PriorityOpt, AllocatorOpt,   FormOpt};
}

std::vector<PolicyDescription> triedPolicies() {
  std::vector<PolicyDescription> Result;
  for (const std::string &Text : TryOpt)
    // The parser of the option has checked the text.
    static_cast<void>(parsePolicy(Text, Result.emplace_back()));
  return Result;
}

RandomPolicyOptions randomPolicyOptions() {
  return {RandomSeedOpt, RandomSplitOpt, RandomSpillOpt, RandomEvictOpt,
          RandomStopOpt};
}
unsigned allocationSearch() { return AllocationSearchOpt; }
bool triesAllPolicies() { return AllocationSearchAllOpt; }
std::chrono::milliseconds allocationSearchBudget() {
  return std::chrono::milliseconds(AllocationSearchBudgetOpt);
}
std::chrono::milliseconds allocationTrialLimit() {
  return std::chrono::milliseconds(
      std::max(1u, AllocationTrialLimitOpt.getValue()));
}
bool replacesAdvisors() {
  const PolicyDescription Given = givenPolicy();
  return allocationSearch() != 0 || !Given.Eviction.empty() ||
         !Given.Priority.empty() ||
         Given.Fixed == FixedPolicy::EvictionByWeight ||
         Given.Fixed == FixedPolicy::PriorityBySize;
}
StringRef allocationFunctions() { return FunctionsOpt; }
unsigned allocationMaxRanges() { return MaxRangesOpt; }
unsigned allocationRepeats() { return RepeatsOpt; }
AllocationMeasure allocationMeasure() { return RewardOpt; }
StringRef allocationVocabulary() { return VocabularyOpt; }
StringRef tripletsFile() { return TripletsOpt; }
StringRef allocationCostsFile() { return AllocationCostsOpt; }

} // namespace MLBridge
