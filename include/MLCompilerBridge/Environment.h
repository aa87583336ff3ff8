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

#ifndef MLCOMPILERBRIDGE_ENVIRONMENT_H
#define MLCOMPILERBRIDGE_ENVIRONMENT_H

#include "MLCompilerBridge/Advice.h"
#include "MLCompilerBridge/FeatureSet.h"

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
  virtual Error step(const Advice &Action, FeatureSet &Observation) = 0;
  /// The reward of the last step.
  virtual double reward() const { return 0; }

  void setDone(bool IsDone = true) { Done = IsDone; }
  bool checkDone() const { return Done; }
  /// The label of the agent that the last observation is for; empty where
  /// there is one agent only.
  const std::string &getNextAgent() const { return NextAgent; }
  void setNextAgent(std::string Label) { NextAgent = std::move(Label); }

private:
  bool Done = false;
  std::string NextAgent;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_ENVIRONMENT_H
