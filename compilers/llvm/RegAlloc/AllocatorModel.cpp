//===- AllocatorModel.cpp - A model that allocates registers --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Sends the observation of a function and checks the reply.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/AllocatorModel.h"

#include "RegAlloc/AllocationContext.h"
#include "Support/Options.h"

#include "MLCompilerBridge/Extend/ReservedNames.h"

#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace MLBridge {

using Clock = std::chrono::steady_clock;
std::unique_ptr<AllocatorModel>
AllocatorModel::open(StringRef Spec, AllocatorForm Form, Module &M) {
  std::unique_ptr<ModelSession> Session =
      ModelSession::open("mlbridge-regalloc", Spec, M);
  if (!Session)
    return nullptr;
  return std::unique_ptr<AllocatorModel>(
      new AllocatorModel(Form, std::move(Session)));
}

void AllocatorModel::load() {
  if (Error E = Session->runner().loadBeforeFork())
    Session->countUndecided(E);
}

AllocatorModel::~AllocatorModel() {
  if (!printStatistics())
    return;
  using Microseconds = std::chrono::duration<double, std::micro>;
  std::string Line =
      Session->statistics() + formatv(" ranges={0}", Ranges).str();
  if (Session->requests() != 0)
    Line +=
        formatv(" observe_us_per_range={0:F2} reply_us={1:F2}",
                Microseconds(Observing).count() / double(Ranges),
                Microseconds(Replying).count() / double(Session->requests()));
  printLine(Line);
}

Expected<Preferences> AllocatorModel::request() {
  MLModelRunner &Runner = Session->runner();
  Features.clear();
  Observation.setFeatures(Features);
  Expected<Advice> Reply = Runner.ask(Features, AdviceSpec::any());
  if (!Reply)
    return Reply.takeError();
  Expected<Preferences> Result = Preferences::from(*Reply, Observation.size());
  if (!Result)
    return Error(Result.code(),
                 Runner.describe() + ": " + Result.takeError().message());
  return Result;
}

bool AllocatorModel::prepare(const AllocationContext &Context) {
  if (Session->hasFailed())
    return false;
  const Module &M = *Context.MF.getFunction().getParent();
  Session->runner().switchContext(M.getModuleIdentifier() + ":" +
                                  Context.MF.getName().str());
  const Clock::time_point Begin = Clock::now();
  Observation.buildBefore(Context);
  if (Error E = Observation.addInstructions(Context, allocationVocabulary())) {
    Session->countUndecided(E);
    return false;
  }
  Observing += Clock::now() - Begin;
  Ranges += Observation.size();
  if (Observation.size() == 0)
    return false;
  if (Form == AllocatorForm::Dialogue)
    return true;
  const Clock::time_point Built = Clock::now();
  Expected<Preferences> Reply = request();
  Replying += Clock::now() - Built;
  Session->countRequest();
  if (!Reply) {
    Session->countUndecided(Reply.takeError());
    return false;
  }
  Given = std::move(*Reply);
  return true;
}

std::unique_ptr<AllocationPolicy>
AllocatorModel::policy(const AllocationContext &Context) {
  if (const Function *F = &Context.MF.getFunction(); F != Last) {
    Last = F;
    IsReady = prepare(Context);
  }
  if (!IsReady || Session->hasFailed())
    return nullptr;
  return Form == AllocatorForm::Dialogue
             ? makeDialogue(Context, Observation, *this)
             : makePreferences(Context, Observation, Given);
}

std::optional<std::int64_t>
AllocatorModel::decide(std::string_view Agent,
                       const DialogueObservation &Step) {
  if (Session->hasFailed())
    return std::nullopt;
  const Clock::time_point Begin = Clock::now();
  Features.clear();
  Features.set(ReservedNames::Agent, Agent);
  Step.setFeatures(Agent, Observation, Features);
  Expected<Advice> Reply =
      Session->runner().ask(Features, AdviceSpec::of<std::int64_t>());
  Replying += Clock::now() - Begin;
  Session->countRequest();
  if (!Reply) {
    Session->countUndecided(Reply.takeError());
    return std::nullopt;
  }
  Expected<std::int64_t> Choice =
      Session->runner().convert<std::int64_t>(*Reply);
  if (!Choice) {
    Session->countUndecided(Choice.takeError());
    return std::nullopt;
  }
  return *Choice;
}

void AllocatorModel::refuse(Error Why) {
  Session->countUndecided(
      {Why.code(), Session->runner().describe() + ": " + Why.message()});
}

} // namespace MLBridge
