//===- EnvironmentSession.h - Messages to an environment --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines EnvironmentSession, which executes training messages. It does not
/// depend on how the messages arrive. serveEnvironment() uses it with a
/// Transport. Another kind of server, such as a gRPC service, calls reply()
/// once for each message.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRAINING_ENVIRONMENTSESSION_H
#define MLCOMPILERBRIDGE_TRAINING_ENVIRONMENTSESSION_H

#include "MLCompilerBridge/Extend/ReservedNames.h"
#include "MLCompilerBridge/Training/Environment.h"

#include <vector>

namespace MLBridge {

/// The former name of ReservedNames, which remains until version 1.0.
using TrainingNames = ReservedNames;

/// Executes the commands of one trainer on one environment. Only one thread at
/// a time may use a session. After the first few messages, the session
/// allocates no memory.
class EnvironmentSession {
public:
  /// Creates a session. \p Env must outlive the session.
  explicit EnvironmentSession(Environment &Env) : Env(Env) {}

  /// Returns the tensors of the first message, for transports where the
  /// compiler sends the first message.
  Span<const TensorView> greet();

  /// Executes the message \p Command and returns the tensors of the reply.
  /// These are an observation, or `_error` and `_code` if the command failed.
  /// The tensors are valid until the next call. Elements that the environment
  /// has set as views belong to the environment, and are valid until its next
  /// reset() or step(). After the command `close`, do not send the returned
  /// tensors.
  Span<const TensorView> reply(Span<const TensorView> Command);

  /// Returns whether the trainer has sent `close`.
  bool isClosed() const { return Closed; }

private:
  Error execute(Span<const TensorView> Message);
  Error reset(Span<const TensorView> Message);
  Error step(Span<const TensorView> Message);
  Error observe(double Reward);

  Environment &Env;
  FeatureSet Reply;
  /// The tensors of the action, which point into the message.
  std::vector<TensorView> Action;
  /// None before an episode or after an error, Running during an episode, and
  /// Over after its end.
  enum class Episode { None, Running, Over } State = Episode::None;
  bool Closed = false;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRAINING_ENVIRONMENTSESSION_H
