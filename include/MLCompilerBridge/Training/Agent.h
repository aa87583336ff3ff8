//===- Agent.h - Agents of an environment -----------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Agent: chooses an action for an observation (paper, section 3.1.2), and
/// runEpisode(), in which agents act in an Environment until the episode ends.
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

/// An agent that sends each observation to a model runner, which it does not
/// own.
class RunnerAgent final : public Agent {
public:
  explicit RunnerAgent(MLModelRunner &Runner) : Runner(Runner) {}
  Expected<Advice> computeAction(const FeatureSet &Observation) override {
    return Runner.ask(Observation, AdviceSpec::any());
  }

private:
  MLModelRunner &Runner;
};

/// The agents by label; the label is "" if the environment has one agent.
using AgentMap = std::map<std::string, Agent *, std::less<>>;

/// Runs one episode: reset, then one step by the agent whose turn it is, until
/// checkDone(). Returns the sum of the rewards.
///
/// Errors: InvalidArgument if \p Agents lacks the next agent; Timeout if the
/// episode exceeds \p MaxSteps steps; otherwise the error of the environment or
/// agent.
Expected<double> runEpisode(Environment &Env, const AgentMap &Agents,
                            std::size_t MaxSteps = 1'000'000);
/// The same with one runner for all agents. If the environment names the next
/// agent, the runner gets its label as the feature `_agent`: a runner of
/// several labelled models picks the model by it, and a single model may take
/// it as an input.
Expected<double> runEpisode(Environment &Env, MLModelRunner &Runner,
                            std::size_t MaxSteps = 1'000'000);

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRAINING_AGENT_H
