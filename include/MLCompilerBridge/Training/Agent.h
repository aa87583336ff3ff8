//===- Agent.h - Agents of an environment -----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines Agent, which chooses an action for an observation, and
/// runEpisode(), in which agents act in an Environment until the
/// episode ends.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRAINING_AGENT_H
#define MLCOMPILERBRIDGE_TRAINING_AGENT_H

#include "MLCompilerBridge/MLModelRunner.h"
#include "MLCompilerBridge/Training/Environment.h"

#include <map>

namespace MLBridge {

/// Chooses actions. To write an agent, derive a class and override
/// computeAction(). Only one thread at a time may use an agent.
class Agent {
public:
  virtual ~Agent();
  /// Returns the action for \p Observation. The action's views are valid until
  /// the next call.
  virtual Expected<Advice> computeAction(const FeatureSet &Observation) = 0;
};

/// An agent that sends each observation to a model runner. The runner must
/// outlive the agent.
class RunnerAgent final : public Agent {
public:
  explicit RunnerAgent(MLModelRunner &Runner) : Runner(Runner) {}
  Expected<Advice> computeAction(const FeatureSet &Observation) override {
    return Runner.ask(Observation, AdviceSpec::any());
  }

private:
  MLModelRunner &Runner;
};

/// Maps labels to agents. If the environment has only one agent, its label is
/// "".
using AgentMap = std::map<std::string, Agent *, std::less<>>;

/// Runs one episode and returns the sum of the rewards. Resets the environment,
/// then lets the next agent act in each step until checkDone().
///
/// Returns InvalidArgument if \p Agents lacks the next agent, Timeout if the
/// episode needs more than \p MaxSteps steps, or an error of the environment or
/// an agent.
Expected<double> runEpisode(Environment &Env, const AgentMap &Agents,
                            std::size_t MaxSteps = 1'000'000);
/// Runs one episode as above, with one runner for all agents. If the
/// environment names the next agent, the runner receives the agent's label as
/// the feature `_agent`. A runner with several labelled models then evaluates
/// the model with this label. A single model can use the label as an input.
Expected<double> runEpisode(Environment &Env, MLModelRunner &Runner,
                            std::size_t MaxSteps = 1'000'000);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRAINING_AGENT_H
