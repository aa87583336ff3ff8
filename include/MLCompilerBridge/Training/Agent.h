//===- Agent.h - Who acts in an environment ---------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Agent: chooses an action for an observation (paper, section 3.4), and
/// runEpisode(), which lets agents play an Environment to its end.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRAINING_AGENT_H
#define MLCOMPILERBRIDGE_TRAINING_AGENT_H

#include "MLCompilerBridge/MLModelRunner.h"
#include "MLCompilerBridge/Training/Environment.h"

#include <map>

namespace MLBridge {

/// Derive and override computeAction(). Used by one thread at a time.
class Agent {
public:
  virtual ~Agent();
  /// The action for \p Observation; its views are valid until the next call.
  virtual Expected<Advice> computeAction(const FeatureSet &Observation) = 0;
};

/// An agent that asks a model runner, which it does not own.
class RunnerAgent final : public Agent {
public:
  explicit RunnerAgent(MLModelRunner &Runner) : Runner(Runner) {}
  Expected<Advice> computeAction(const FeatureSet &Observation) override {
    return Runner.ask(Observation, AdviceSpec::any());
  }

private:
  MLModelRunner &Runner;
};

/// The agents by label; the label "" for an environment with one agent.
using AgentMap = std::map<std::string, Agent *, std::less<>>;

/// Plays one episode: reset, then each named agent in turn until checkDone().
/// Returns the sum of the rewards. An unknown agent is an InvalidArgument; an
/// episode of more than \p MaxSteps steps is a Timeout.
Expected<double> runEpisode(Environment &Env, const AgentMap &Agents,
                            std::size_t MaxSteps = 1'000'000);
/// The same with one runner for all agents, which is told by the feature
/// `_agent` whose turn it is, where the environment says: a runner of several
/// models by label, or a model that tells its agents apart.
Expected<double> runEpisode(Environment &Env, MLModelRunner &Runner,
                            std::size_t MaxSteps = 1'000'000);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRAINING_AGENT_H
