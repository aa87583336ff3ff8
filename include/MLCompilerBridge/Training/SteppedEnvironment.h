//===- SteppedEnvironment.h - Episodes inside a running pass ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines SteppedEnvironment, for passes that cannot return to their caller
/// between two decisions. Such a pass calls act() wherever it needs an action:
/// \code
///   SteppedEnvironment Env;
///   if (Error E = Env.serve(Spec))
///     return E;
///   while (Env.waitForReset()) {
///     if (const Advice *Action = Env.act(Observe))
///       Cost = apply(*Action);
///     Env.endEpisode(-Cost, Observe);
///   }
/// \endcode
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRAINING_STEPPEDENVIRONMENT_H
#define MLCOMPILERBRIDGE_TRAINING_STEPPEDENVIRONMENT_H

#include "MLCompilerBridge/Training/Environment.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace MLBridge {

/// An environment whose compiler runs in one thread, while another thread
/// executes the trainer's commands. The threads take turns, so at any time only
/// one of them runs.
///
/// The thread that constructs the object calls the functions of this class. The
/// other thread calls the functions of the base class Environment.
class SteppedEnvironment final : public Environment {
public:
  using Observer = std::function<void(FeatureSet &)>;

  SteppedEnvironment();
  /// Waits until the trainer has left. Until then, the trainer's commands fail.
  ~SteppedEnvironment() override;

  /// Starts the thread that serves the trainer at \p Spec, as
  /// serveEnvironment() does. Returns a System error if the thread cannot be
  /// started.
  Error serve(std::string_view Spec);

  /// Waits for the trainer's command reset. Returns false if the trainer has
  /// left. Call this function after an episode has ended or act() has returned
  /// null.
  bool waitForReset();

  /// Calls \p Observe, sends the resulting observation to \p Agent, and waits
  /// for the action. \p Reward is the reward of the previous action. Returns
  /// null if the trainer has abandoned the episode or has left.
  ///
  /// The action is valid until the next call of a function of this class. Data
  /// borrowed by \p Observe must stay unchanged until then.
  const Advice *act(const Observer &Observe, std::string Agent = "",
                    double Reward = 0);

  /// Ends the episode. Sends the last reward, and the last observation, which
  /// \p Observe writes. Both are for the agent that acted last. \p Info is a
  /// JSON object or empty (see Environment::info()). Data borrowed by
  /// \p Observe must stay unchanged until the next waitForReset() has returned.
  void endEpisode(double Reward, const Observer &Observe,
                  std::string Info = "");
  /// Ends the episode with an error, which the trainer receives.
  void failEpisode(Error Why);

  /// Makes all further commands of the trainer fail with the error \p Why.
  void stop(Error Why);
  /// After the trainer has left, returns the result of serving the trainer.
  Error result() const;

  // Functions of Environment. The thread that serves the trainer calls them.
  Error reset(FeatureSet &Observation) override;
  Error step(const Advice &Action, FeatureSet &Observation) override;
  double reward() const override;

private:
  struct State;
  const std::unique_ptr<State> S;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRAINING_STEPPEDENVIRONMENT_H
