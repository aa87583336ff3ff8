//===- Agent.cpp - Runs agents in an environment --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implements runEpisode(), the reinforcement learning loop with the
/// environment and its agents in one process.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Training/Agent.h"

#include "MLCompilerBridge/Extend/ReservedNames.h"

using namespace MLBridge;

Environment::~Environment() = default;
Agent::~Agent() = default;

/// Returns the agent that acts next.
static Expected<Agent *> nextAgent(const Environment &Env,
                                   const AgentMap &Agents) {
  auto Found = Agents.find(Env.getNextAgent());
  if (Found != Agents.end() && Found->second)
    return Found->second;
  std::string Known;
  for (const auto &[Label, TheAgent] : Agents)
    if (TheAgent)
      Known += (Known.empty() ? "'" : ", '") + Label + "'";
  return Error(
      ErrorCode::InvalidArgument,
      "the environment asks for agent '" + Env.getNextAgent() + "', but " +
          (Known.empty() ? "there is no agent" : "there is only " + Known));
}

/// Runs one episode. \p Act computes the action for an observation.
template <typename Actor>
static Expected<double> play(Environment &Env, std::size_t MaxSteps,
                             Actor Act) {
  // Use two sets. The action may contain views of Observation, so step() must
  // write the next observation to another set.
  FeatureSet Observation, Next;
  Env.beginEpisode();
  if (Error E = Env.reset(Observation))
    return E;

  double Return = 0;
  for (std::size_t Step = 0; !Env.checkDone(); ++Step) {
    if (Step == MaxSteps)
      return Error(ErrorCode::Timeout, "the episode was not done after " +
                                           std::to_string(MaxSteps) + " steps");
    if (Observation.error())
      return Observation.error();
    Expected<Advice> Action = Act(Observation);
    if (!Action)
      return Action.takeError();
    Next.clear();
    Env.beginStep();
    if (Error E = Env.step(*Action, Next))
      return E;
    Return += Env.reward();
    Observation.swap(Next);
  }
  return Return;
}

Expected<double> MLBridge::runEpisode(Environment &Env, const AgentMap &Agents,
                                      std::size_t MaxSteps) {
  return play(Env, MaxSteps,
              [&](const FeatureSet &Observation) -> Expected<Advice> {
                Expected<Agent *> Actor = nextAgent(Env, Agents);
                if (!Actor)
                  return Actor.takeError();
                return (*Actor)->computeAction(Observation);
              });
}

Expected<double> MLBridge::runEpisode(Environment &Env, MLModelRunner &Runner,
                                      std::size_t MaxSteps) {
  return play(Env, MaxSteps, [&](FeatureSet &Observation) {
    if (!Env.getNextAgent().empty())
      Observation.set(ReservedNames::Agent,
                      std::string_view(Env.getNextAgent()));
    return Runner.ask(Observation, AdviceSpec::any());
  });
}
