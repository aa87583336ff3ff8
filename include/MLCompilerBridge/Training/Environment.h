//===- Environment.h - A compiler as an RL environment ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Environment: what a compiler looks like to reinforcement learning (paper,
/// section 3.4): it is reset, takes actions and shows observations until it is
/// done. In-process runners drive it with Agents; a trainer in another process
/// drives it over a transport.
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

  /// Starts an episode and writes its first observation to \p Observation
  /// (which comes empty). Call setNextAgent() where there are several agents.
  virtual Error reset(FeatureSet &Observation) = 0;
  /// Does \p Action and writes what is seen then. Call setDone() at the end of
  /// the episode.
  ///
  /// What \p Observation borrows must stay as it is until the next call of
  /// reset() or step(). An error ends the episode, not the conversation.
  virtual Error step(const Advice &Action, FeatureSet &Observation) = 0;
  /// The reward of the last step; where there are several agents, of the one
  /// that has acted.
  virtual double reward() const { return 0; }

  /// Says that the episode has come to its own end.
  void setDone(bool IsDone = true) { Done = IsDone; }
  /// Says that the episode is cut short by a limit that is no part of the task,
  /// such as of steps or of time. Learners tell the two apart, since what would
  /// have come next still has a value.
  void setTruncated() { Truncated = true; }
  /// Whether the episode is over, for either reason.
  bool checkDone() const { return Done || Truncated; }
  bool isTerminated() const { return Done; }
  bool isTruncated() const { return Truncated; }

  /// The label of the agent that the last observation is for; empty where
  /// there is one agent only.
  const std::string &getNextAgent() const { return NextAgent; }
  void setNextAgent(std::string Label) { NextAgent = std::move(Label); }

  /// What else is worth knowing about the last observation, as a JSON object
  /// without the keys "error" and "episode", which mean something to trainers:
  /// for logs, not for learning. Empty unless it is set for this observation.
  const std::string &info() const { return InfoText; }
  void setInfo(std::string JSON) { InfoText = std::move(JSON); }

  /// What this episode should take its random numbers from, if anybody cares;
  /// for reset() to look at.
  std::optional<std::int64_t> seed() const { return EpisodeSeed; }
  /// What else was asked of this episode, as a JSON object, or empty.
  const std::string &options() const { return EpisodeOptions; }

  /// Whoever drives the environment calls this before reset()...
  void beginEpisode(std::optional<std::int64_t> Seed = std::nullopt,
                    std::string_view Options = {}) {
    Done = Truncated = false;
    EpisodeSeed = Seed;
    EpisodeOptions = Options;
    InfoText.clear();
  }
  /// ... and this before step().
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
