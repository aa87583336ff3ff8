//===- EnvironmentSession.h - Messages to an environment --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// EnvironmentSession: executes training messages, independent of transport and
/// role. serveEnvironment() connects it to a transport; another kind of server,
/// such as a gRPC service, calls it once for each message.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRAINING_ENVIRONMENTSESSION_H
#define MLCOMPILERBRIDGE_TRAINING_ENVIRONMENTSESSION_H

#include "MLCompilerBridge/Extend/ReservedNames.h"
#include "MLCompilerBridge/Training/Environment.h"

#include <vector>

namespace MLBridge {

/// The former name, until 1.0.
using TrainingNames = ReservedNames;

/// One trainer and the environment that it drives. Used by one thread at a
/// time. Once warm, it allocates nothing itself.
class EnvironmentSession {
public:
  /// \p Env must outlive this.
  explicit EnvironmentSession(Environment &Env) : Env(Env) {}

  /// The tensors of the first message, for transports where the compiler sends
  /// first.
  Span<const TensorView> greet();

  /// Executes the message \p Command and returns the tensors of the reply: an
  /// observation, or `_error` and `_code`. The tensors are valid until the next
  /// call, and data that they borrow from the environment for as long as the
  /// environment promises. Send no reply to a `close`.
  Span<const TensorView> reply(Span<const TensorView> Command);

  /// True if the trainer has sent `close`.
  bool isClosed() const { return Closed; }

private:
  Error execute(Span<const TensorView> Message);
  Error reset(Span<const TensorView> Message);
  Error step(Span<const TensorView> Message);
  Error observe(double Reward);

  Environment &Env;
  FeatureSet Reply;
  /// The action's tensors, which view the message.
  std::vector<TensorView> Action;
  /// Running from a reset to the end of its episode.
  enum class Episode { None, Running, Over } State = Episode::None;
  bool Closed = false;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRAINING_ENVIRONMENTSESSION_H
