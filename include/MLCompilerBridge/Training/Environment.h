//===- Environment.h - A compiler as an RL environment ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines Environment, a compiler as a reinforcement learning environment.
/// Agents in this process can act in the environment. A trainer in another
/// process can act in it through a transport.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRAINING_ENVIRONMENT_H
#define MLCOMPILERBRIDGE_TRAINING_ENVIRONMENT_H

#include "MLCompilerBridge/Advice.h"
#include "MLCompilerBridge/FeatureSet.h"

#include <optional>
#include <string>

namespace MLBridge {

/// A compiler as an environment. To write an environment, derive a class and
/// override reset() and step(). Only one thread at a time may use an
/// environment.
class Environment {
public:
  virtual ~Environment();

  /// Starts an episode and writes the first observation to \p Observation,
  /// which is empty. An override calls setNextAgent() if there are several
  /// agents.
  virtual Error reset(FeatureSet &Observation) = 0;
  /// Applies \p Action and writes the next observation to \p Observation, which
  /// is empty. An override calls setDone() at the end of the episode.
  ///
  /// Data that \p Observation borrows must stay unchanged until the next call
  /// of reset() or step(). An error ends the episode, but not the session with
  /// the trainer.
  virtual Error step(const Advice &Action, FeatureSet &Observation) = 0;
  /// Returns the reward of the last step. If there are several agents, this is
  /// the reward of the agent that acted.
  virtual double reward() const { return 0; }

  /// Marks the episode as terminated, that is, the task itself has ended.
  void setDone(bool IsDone = true) { Done = IsDone; }
  /// Marks the episode as truncated by a limit outside the task, such as a
  /// maximum number of steps or a time-out. Learners distinguish truncated from
  /// terminated episodes, because the last state of a truncated episode still
  /// has a value.
  void setTruncated() { Truncated = true; }
  /// Returns whether the episode is terminated or truncated.
  bool checkDone() const { return Done || Truncated; }
  bool isTerminated() const { return Done; }
  bool isTruncated() const { return Truncated; }

  /// Returns the label of the agent that receives the last observation. The
  /// label is empty if there is only one agent.
  const std::string &getNextAgent() const { return NextAgent; }
  void setNextAgent(std::string Label) { NextAgent = std::move(Label); }

  /// Returns additional information about the last observation, or an empty
  /// string if none was set. The information is for logs, not for learning. It
  /// is a JSON object without the keys "error" and "episode", which trainers
  /// reserve.
  const std::string &info() const { return InfoText; }
  void setInfo(std::string JSON) { InfoText = std::move(JSON); }

  /// Returns the seed for this episode's random numbers, or nullopt if the
  /// trainer has set no seed. An override of reset() reads the seed.
  std::optional<std::int64_t> seed() const { return EpisodeSeed; }
  /// Returns the trainer's other options for this episode: a JSON object, or an
  /// empty string if there are none.
  const std::string &options() const { return EpisodeOptions; }

  /// Prepares a new episode. Code that calls reset() must call this function
  /// first. runEpisode() and EnvironmentSession do so.
  void beginEpisode(std::optional<std::int64_t> Seed = std::nullopt,
                    std::string_view Options = {}) {
    Done = Truncated = false;
    EpisodeSeed = Seed;
    EpisodeOptions = Options;
    InfoText.clear();
  }
  /// Prepares a step. Code that calls step() must call this function first.
  /// runEpisode() and EnvironmentSession do so.
  void beginStep() { InfoText.clear(); }

private:
  bool Done = false;
  bool Truncated = false;
  std::string NextAgent;
  std::string InfoText;
  std::optional<std::int64_t> EpisodeSeed;
  std::string EpisodeOptions;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRAINING_ENVIRONMENT_H
