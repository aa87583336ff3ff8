//===- Environment.h - A compiler as an RL environment ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Environment: a compiler as a reinforcement learning environment (paper,
/// section 3.1.2). It is reset, takes actions and returns observations until
/// the episode ends. Agents drive it in this process; a trainer in another
/// process drives it over a transport.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRAINING_ENVIRONMENT_H
#define MLCOMPILERBRIDGE_TRAINING_ENVIRONMENT_H

#include "MLCompilerBridge/Advice.h"
#include "MLCompilerBridge/FeatureSet.h"

#include <optional>
#include <string>

namespace MLBridge {

/// Derive, and override reset() and step(). Used by one thread at a time.
class Environment {
public:
  virtual ~Environment();

  /// Starts an episode and writes its first observation to the empty \p
  /// Observation. Call setNextAgent() if there are several agents.
  virtual Error reset(FeatureSet &Observation) = 0;
  /// Applies \p Action and writes the next observation to the empty \p
  /// Observation. Call setDone() at the end of the episode.
  ///
  /// What \p Observation borrows must stay unchanged until the next call of
  /// reset() or step(). An error ends the episode, not the session.
  virtual Error step(const Advice &Action, FeatureSet &Observation) = 0;
  /// The reward of the last step; with several agents, of the agent that acted.
  virtual double reward() const { return 0; }

  /// Marks the episode as terminated: it reached its own end.
  void setDone(bool IsDone = true) { Done = IsDone; }
  /// Marks the episode as truncated by a limit outside the task, such as a
  /// number of steps or a time. Learners distinguish the two: a truncated
  /// episode's future still has a value.
  void setTruncated() { Truncated = true; }
  /// True if the episode is over, for either reason.
  bool checkDone() const { return Done || Truncated; }
  bool isTerminated() const { return Done; }
  bool isTruncated() const { return Truncated; }

  /// The label of the agent that the last observation is for; empty if there is
  /// only one agent.
  const std::string &getNextAgent() const { return NextAgent; }
  void setNextAgent(std::string Label) { NextAgent = std::move(Label); }

  /// More about the last observation, for logs rather than learning: a JSON
  /// object without the keys "error" and "episode", which trainers reserve.
  /// Empty unless set for this observation.
  const std::string &info() const { return InfoText; }
  void setInfo(std::string JSON) { InfoText = std::move(JSON); }

  /// The seed of this episode's random numbers, if the caller gave one; reset()
  /// reads it.
  std::optional<std::int64_t> seed() const { return EpisodeSeed; }
  /// The caller's further options for this episode: a JSON object, or empty.
  const std::string &options() const { return EpisodeOptions; }

  /// Call this before reset(). runEpisode() and EnvironmentSession do.
  void beginEpisode(std::optional<std::int64_t> Seed = std::nullopt,
                    std::string_view Options = {}) {
    Done = Truncated = false;
    EpisodeSeed = Seed;
    EpisodeOptions = Options;
    InfoText.clear();
  }
  /// Call this before step(). runEpisode() and EnvironmentSession do.
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
