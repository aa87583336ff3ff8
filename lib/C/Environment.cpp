//===- Environment.cpp - Environments written in C ------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "C/Call.h"
#include "C/Handles.h"
#include "C/Schemes.h"

#include "MLCompilerBridge/Training/Agent.h"
#include "MLCompilerBridge/Training/Environment.h"

#include <vector>

using namespace MLBridge;
using namespace MLBridge::C;

struct MLBridgeOpaqueEnvironment final : Environment {
  MLBridgeOpaqueEnvironment(const MLBridgeEnvironmentCallbacks &Callbacks,
                            void *User)
      : Callbacks(Callbacks), User(User) {}

  Error reset(FeatureSet &Observation) override {
    MLBridgeOpaqueFeatureSet Out{Observation, {}};
    Error E =
        callUser("Reset", [&] { return Callbacks.Reset(User, this, &Out); });
    return E ? E : Out.Misuse;
  }

  Error step(const Advice &TheAction, FeatureSet &Observation) override {
    MLBridgeOpaqueFeatureSet Out{Observation, {}};
    Action.reset(TheAction);
    Error E = callUser(
        "Step", [&] { return Callbacks.Step(User, this, &Action, &Out); });
    return E ? E : Out.Misuse;
  }

  double reward() const override {
    return Callbacks.Reward ? Callbacks.Reward(User) : 0;
  }

private:
  MLBridgeEnvironmentCallbacks Callbacks;
  void *User;
  MLBridgeOpaqueAdvice Action;
};

MLBridgeStatus
mlbridgeCreateEnvironment(const MLBridgeEnvironmentCallbacks *Callbacks,
                          void *User, MLBridgeEnvironmentRef *Environment) {
  return call([&]() -> Error {
    if (!Callbacks)
      return isNull("Callbacks");
    if (!Environment)
      return isNull("Environment");
    if (Error E = checkSize(Callbacks->Size, sizeof(*Callbacks)))
      return E;
    if (!Callbacks->Reset)
      return isNull("Callbacks->Reset");
    if (!Callbacks->Step)
      return isNull("Callbacks->Step");
    *Environment = new MLBridgeOpaqueEnvironment(*Callbacks, User);
    return Error::success();
  });
}

void mlbridgeDisposeEnvironment(MLBridgeEnvironmentRef Environment) {
  delete Environment;
}

//===----------------------------------------------------------------------===//
// The state of an episode
//===----------------------------------------------------------------------===//

MLBridgeStatus mlbridgeSetDone(MLBridgeEnvironmentRef Environment) {
  return call([&]() -> Error {
    if (!Environment)
      return isNull("Environment");
    Environment->setDone();
    return Error::success();
  });
}

MLBridgeStatus mlbridgeSetTruncated(MLBridgeEnvironmentRef Environment) {
  return call([&]() -> Error {
    if (!Environment)
      return isNull("Environment");
    Environment->setTruncated();
    return Error::success();
  });
}

bool mlbridgeCheckDone(MLBridgeEnvironmentRef Environment) {
  return Environment && Environment->checkDone();
}

MLBridgeStatus mlbridgeSetNextAgent(MLBridgeEnvironmentRef Environment,
                                    const char *Label) {
  return call([&]() -> Error {
    if (!Environment)
      return isNull("Environment");
    if (!Label)
      return isNull("Label");
    Environment->setNextAgent(Label);
    return Error::success();
  });
}

MLBridgeStatus mlbridgeGetNextAgent(MLBridgeEnvironmentRef Environment,
                                    const char **Label) {
  return call([&]() -> Error {
    if (!Environment)
      return isNull("Environment");
    if (!Label)
      return isNull("Label");
    *Label = Environment->getNextAgent().c_str();
    return Error::success();
  });
}

MLBridgeStatus mlbridgeSetInfo(MLBridgeEnvironmentRef Environment,
                               const char *JSON) {
  return call([&]() -> Error {
    if (!Environment)
      return isNull("Environment");
    if (!JSON)
      return isNull("JSON");
    Environment->setInfo(JSON);
    return Error::success();
  });
}

MLBridgeStatus mlbridgeGetSeed(MLBridgeEnvironmentRef Environment,
                               bool *HasSeed, int64_t *Seed) {
  return call([&]() -> Error {
    if (!Environment)
      return isNull("Environment");
    if (!HasSeed)
      return isNull("HasSeed");
    if (!Seed)
      return isNull("Seed");
    const std::optional<std::int64_t> Given = Environment->seed();
    *HasSeed = Given.has_value();
    *Seed = Given.value_or(*Seed);
    return Error::success();
  });
}

MLBridgeStatus mlbridgeGetOptions(MLBridgeEnvironmentRef Environment,
                                  const char **JSON) {
  return call([&]() -> Error {
    if (!Environment)
      return isNull("Environment");
    if (!JSON)
      return isNull("JSON");
    *JSON = Environment->options().c_str();
    return Error::success();
  });
}

//===----------------------------------------------------------------------===//
// Driving environments
//===----------------------------------------------------------------------===//

/// Creates an agent in \p Storage for each element of \p Agents. Returns a map
/// from labels to these agents.
static Expected<AgentMap> agentMap(Span<const MLBridgeAgent> Agents,
                                   std::vector<RunnerAgent> &Storage) {
  AgentMap Map;
  Storage.reserve(Agents.size());
  for (const MLBridgeAgent &Given : Agents) {
    const std::string Label = Given.Label ? Given.Label : "";
    Storage.emplace_back(*Given.Runner->Runner);
    if (!Map.emplace(Label, &Storage.back()).second)
      return Error(ErrorCode::InvalidArgument,
                   "there are two agents '" + Label + "'");
  }
  return Map;
}

static Expected<double> play(Environment &Env, Span<const MLBridgeAgent> Agents,
                             std::size_t MaxSteps) {
  for (const MLBridgeAgent &Given : Agents) {
    if (!Given.Runner)
      return Error(ErrorCode::InvalidArgument,
                   "the runner of agent '" +
                       std::string(Given.Label ? Given.Label : "") +
                       "' is null");
    // Reset the last advice, because the episode makes its views invalid.
    Given.Runner->Reply.reset();
  }
  if (Agents.size() == 1 && !Agents[0].Label)
    return runEpisode(Env, *Agents[0].Runner->Runner, MaxSteps);
  std::vector<RunnerAgent> Storage;
  Expected<AgentMap> Map = agentMap(Agents, Storage);
  if (!Map)
    return Map.takeError();
  return runEpisode(Env, *Map, MaxSteps);
}

MLBridgeStatus mlbridgeRunEpisode(MLBridgeEnvironmentRef Environment,
                                  const MLBridgeAgent *Agents, size_t NumAgents,
                                  size_t MaxSteps, double *Return) {
  return call([&]() -> Error {
    if (!Environment)
      return isNull("Environment");
    if (!Agents && NumAgents != 0)
      return isNull("Agents");
    Expected<double> Sum = play(*Environment, {Agents, NumAgents}, MaxSteps);
    if (Sum && Return)
      *Return = *Sum;
    return Sum.takeError();
  });
}

MLBridgeStatus mlbridgeServeEnvironment(MLBridgeEnvironmentRef Environment,
                                        const char *Spec) {
  return call([&]() -> Error {
    if (!Environment)
      return isNull("Environment");
    Error E = makeEnvironmentServer().serve(*Environment, Spec);
    return Spec ? std::move(E)
                : Error(E.code(), "'Spec' is null: " + E.message());
  });
}
