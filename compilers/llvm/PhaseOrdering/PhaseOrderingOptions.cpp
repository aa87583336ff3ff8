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

#include "Options.h"

#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Process.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace MLBridge {
namespace {

cl::opt<std::string> EnvironmentOpt(
    "mlbridge-environment", cl::cat(optionCategory()), cl::value_desc("spec"),
    cl::desc("Where the trainer is that drives an environment, such as "
             "pipe:/tmp/trainer (default: the variable MLBRIDGE_SPEC)"));

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

Expected<PhaseOrderingSetup> PhaseOrderingSetup::fromOptions() {
  Expected<ActionSpace> Actions = ActionSpace::load(ActionsOpt);
  if (!Actions)
    return Actions.takeError();
  Expected<RewardFunction> Reward = RewardFunction::parse(RewardOpt);
  if (!Reward)
    return Reward.takeError();
  Expected<Observation> Features = Observation::create(
      ObservationOpt, Actions->size(), ir2vecVocabulary(), ir2vecOptions());
  if (!Features)
    return Features.takeError();

  std::optional<EmbeddingKind> Histograms;
  if (Features->needsHistogram())
    Histograms = Features->kind();
  PhaseOrderingSettings Settings{.Programs = {.Actions = std::move(*Actions),
                                              .Reward = std::move(*Reward),
                                              .Histograms = Histograms,
                                              .Verify = VerifyOpt,
                                              .CachedStates = CacheOpt,
                                              .CPU = CPUOpt},
                                 .WithStop = StopOpt,
                                 .Steps = std::max(1U, unsigned(StepsOpt)),
                                 .RelativeToInitial =
                                     ReferenceOpt == Relative::Initial,
                                 .KeptPrograms = ProgramsOpt};
  return PhaseOrderingSetup{std::move(Settings), std::move(*Features)};
}

std::string environmentSpec() {
  if (!EnvironmentOpt.empty())
    return EnvironmentOpt;
  return sys::Process::GetEnv("MLBRIDGE_SPEC").value_or("");
}

} // namespace MLBridge
