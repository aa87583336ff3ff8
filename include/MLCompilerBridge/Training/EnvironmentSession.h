//===- EnvironmentSession.h - Messages to an environment --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// EnvironmentSession: what the messages of training mean, whoever listens and
/// whatever carries them. serveEnvironment() is this class at the end of a
/// transport; a server of another kind (a gRPC service) calls it once for each
/// message.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRAINING_ENVIRONMENTSESSION_H
#define MLCOMPILERBRIDGE_TRAINING_ENVIRONMENTSESSION_H

#include "MLCompilerBridge/Extend/ReservedNames.h"
#include "MLCompilerBridge/Training/Environment.h"

#include <vector>

namespace MLBridge {

/// The same by its old name, until 1.0.
using TrainingNames = ReservedNames;

/// One trainer and the environment that it drives. Used by one thread at a
/// time. Once warm, it allocates nothing of its own.
class EnvironmentSession {
public:
  /// \p Env must outlive this.
  explicit EnvironmentSession(Environment &Env) : Env(Env) {}

  /// The tensors of the first message, where the compiler speaks first.
  Span<const TensorView> greet();

  /// Does what the message \p Command says, and returns the tensors of the
  /// message to be sent back: an observation, or `_error` and `_code`. They are
  /// valid until the next call; what the environment borrowed for them, for as
  /// long as the environment says. Nothing is sent back to a `close`.
  Span<const TensorView> answer(Span<const TensorView> Command);

  /// Whether the trainer has said `close`.
  bool isClosed() const { return Closed; }

private:
  Error obey(Span<const TensorView> Message);
  Error reset(Span<const TensorView> Message);
  Error step(Span<const TensorView> Message);
  Error observe(double Reward);

  Environment &Env;
  FeatureSet Reply;
  /// The action's tensors among those of the message.
  std::vector<TensorView> Action;
  /// Between a reset and the end of its episode.
  enum class Episode { None, Running, Over } State = Episode::None;
  bool Closed = false;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRAINING_ENVIRONMENTSESSION_H
