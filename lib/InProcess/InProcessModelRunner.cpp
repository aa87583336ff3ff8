//===- InProcessModelRunner.cpp - Models in this process ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// InProcessModelRunner: chooses a model and loads it at the first request. A
/// cursor evaluates the model for the request's features. A decision converts
/// the outputs to advice.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/InProcessModelRunner.h"

#include "InProcess/Decision.h"
#include "InProcess/FeatureBinding.h"
#include "InProcess/ModelMetadata.h"
#include "MLCompilerBridge/Extend/ReservedNames.h"
#include "Support/Abandon.h"
#include "Support/ForkDetector.h"
#include "Support/PrintableText.h"

using namespace MLBridge;
using namespace MLBridge::inprocess;

/// A labelled model. Its state exists once the model is loaded.
struct InProcessModelRunner::Agent {
  Agent(std::string Label, Load LoadModel, DecisionOptions Options)
      : Label(std::move(Label)), LoadModel(std::move(LoadModel)),
        Options(std::move(Options)) {}

  struct Ready {
    Ready(std::shared_ptr<const Model> M, std::unique_ptr<ModelCursor> Cursor,
          std::vector<TensorSpec> Others, bool RefuseNonFinite, Decision Decide)
        : TheModel(std::move(M)), Cursor(std::move(Cursor)),
          Binding(TheModel, std::move(Others), RefuseNonFinite),
          Decide(std::move(Decide)) {}

    std::shared_ptr<const Model> TheModel;
    std::unique_ptr<ModelCursor> Cursor;
    FeatureBinding Binding;
    Decision Decide;
  };

  Error load();

  const std::string Label;
  const Load LoadModel;
  const DecisionOptions Options;
  std::unique_ptr<Ready> Loaded;
};

Error InProcessModelRunner::Agent::load() {
  Expected<std::shared_ptr<const Model>> M = LoadModel();
  if (!M)
    return M.takeError();
  Expected<std::vector<TensorSpec>> Others = otherFeatures(**M);
  if (!Others)
    return Others.takeError();
  Expected<bool> Refuse = Options.RefuseNonFinite ? *Options.RefuseNonFinite
                                                  : refusesNonFinite(**M);
  if (!Refuse)
    return Refuse.takeError();
  Expected<Decision> Decide = Decision::create(**M, Options);
  if (!Decide)
    return Decide.takeError();
  Expected<std::unique_ptr<ModelCursor>> Cursor = (*M)->open();
  if (!Cursor)
    return Cursor.takeError();
  Loaded = std::make_unique<Ready>(*M, std::move(*Cursor), std::move(*Others),
                                   *Refuse, std::move(*Decide));
  return Error::success();
}

InProcessModelRunner::InProcessModelRunner(std::string Given, LoadMap Models,
                                           const DecisionOptions &Options)
    : Name(std::move(Given)), Fork(std::make_unique<ForkDetector>()) {
  Name = printable(Name, 2 * MostPrinted);
  for (auto &[Label, LoadModel] : Models)
    Agents.push_back(
        std::make_unique<Agent>(Label, std::move(LoadModel), Options));
}

InProcessModelRunner::~InProcessModelRunner() {
  if (Fork->isForked())
    abandonForked();
}

/// Leaks the models that the parent has loaded. Destroying a runtime's session
/// could wait for threads that do not exist in this process. Later requests
/// load the models again for this process.
void InProcessModelRunner::abandonForked() {
  for (const std::unique_ptr<Agent> &A : Agents)
    abandon(std::move(A->Loaded));
  Fork->claim();
}

std::string InProcessModelRunner::describe() const { return Name; }

Expected<InProcessModelRunner::Agent *>
InProcessModelRunner::agent(std::string_view Label) {
  if (Fork->isForked() && !KeepAfterFork) [[unlikely]]
    abandonForked();
  for (const std::unique_ptr<Agent> &Candidate : Agents)
    if (Candidate->Label == Label) {
      if (!Candidate->Loaded)
        if (Error E = Candidate->load())
          return E;
      return Candidate.get();
    }
  return Error(ErrorCode::SchemaMismatch, Name + ": expected one of " +
                                              labels() + ", found '" +
                                              printable(Label) + "'");
}

/// Returns all labels for error messages, for example "the models 'colour',
/// 'node'".
std::string InProcessModelRunner::labels() const {
  std::string Text;
  for (const std::unique_ptr<Agent> &A : Agents)
    Text += (Text.empty() ? "the models '" : ", '") + printable(A->Label) + "'";
  return Text.empty() ? "no models" : Text;
}

/// Returns \p E with a printable message of limited length. Runtimes and models
/// supply parts of messages, so messages may be long or unprintable.
static Error bounded(const Error &E) {
  return {E.code(), printable(E.message(), 20 * MostPrinted)};
}

Expected<const Model *> InProcessModelRunner::model(std::string_view Label) {
  Expected<Agent *> Found = agent(Label);
  if (!Found)
    return bounded(Found.takeError());
  return (*Found)->Loaded->TheModel.get();
}

Expected<std::optional<std::string>>
InProcessModelRunner::metadata(std::string_view Key) {
  std::optional<std::string> Result;
  if (Agents.size() != 1 || !Agents.front()->Label.empty())
    return Result;
  Expected<const Model *> Only = model();
  if (!Only)
    return Only.takeError();
  if (const std::string *Text = (*Only)->metadata(Key))
    Result = *Text;
  return Result;
}

Error InProcessModelRunner::loadBeforeFork() {
  for (const std::unique_ptr<Agent> &A : Agents)
    if (Expected<const Model *> Loaded = model(A->Label); !Loaded)
      return Loaded.takeError();
  KeepAfterFork = true;
  return Error::success();
}

/// Returns the agent that the feature `_agent` names.
Expected<InProcessModelRunner::Agent *>
InProcessModelRunner::chooseAgent(Span<const TensorView> Features) {
  if (Agents.size() == 1 && Agents.front()->Label.empty())
    return agent({});
  const TensorView *Label =
      findFeature(Features, ReservedNames::Agent, LabelSlot);
  if (!Label)
    return Error(ErrorCode::SchemaMismatch,
                 Name +
                     ": expected the string feature '_agent' to name one of " +
                     labels() + ", found no feature of that name among " +
                     listFeatures(Features));
  if (Label->Type != ElementType::String || !Label->Dims.isScalar())
    return Error(ErrorCode::SchemaMismatch,
                 Name + ": feature '_agent': expected a string, found " +
                     Label->typeStr());
  return agent(Label->text());
}

Expected<Advice>
InProcessModelRunner::evaluateUntyped(const FeatureSet &Features,
                                      const AdviceSpec &, Deadline Until) {
  Expected<Agent *> Asked = chooseAgent(Features.tensors());
  if (!Asked)
    return bounded(Asked.takeError());
  Agent::Ready &Ready = *(*Asked)->Loaded;
  Expected<Span<const TensorView>> Inputs =
      Ready.Binding.bind(Features.tensors());
  if (!Inputs)
    return bounded(Inputs.takeError());
  Expected<Span<const TensorView>> Outputs = Ready.Cursor->runUntil(
      *Inputs, KeepAfterFork ? Deadline::never() : Until);
  if (!Outputs)
    return bounded(Outputs.takeError());
  return Ready.Decide.decide(*Outputs, Features.tensors());
}
