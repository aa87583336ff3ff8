//===- ServeEnvironment.h - Lets a trainer drive a compiler -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines serveEnvironment() for any Transport and SerDes. In training, the
/// model side sends requests and the compiler replies. The trainer uses
/// `mlbridge.envs.CompilerEnv` (docs/guides/training.md).
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRAINING_SERVEENVIRONMENT_H
#define MLCOMPILERBRIDGE_TRAINING_SERVEENVIRONMENT_H

#include "MLCompilerBridge/SerDes/BaseSerDes.h"
#include "MLCompilerBridge/Training/Environment.h"
#include "MLCompilerBridge/Transport/Transport.h"

#include <string_view>

namespace MLBridge {

/// The limits of a compiler's waits for its trainer.
struct EnvironmentOptions {
  Duration ConnectTimeout = TransportOptions().ConnectTimeout;
  /// The limit of the wait for each command, such as reset or step. The default
  /// is no limit.
  Duration CommandTimeout = Duration::max();
};

/// Connects to the trainer at the other end of \p Channel and executes the
/// trainer's commands. Returns success when the trainer sends `close`,
/// disconnects or dies. Errors of \p Env are sent to the trainer. They end the
/// episode, but not the session.
///
/// Returns Timeout if the trainer does not connect or send a command in time.
/// Returns Malformed or another error if a message cannot be decoded.
///
/// For a trainer that a spec names, see EnvironmentServer.h.
Error serveEnvironment(Environment &Env, Transport &Channel, BaseSerDes &Codec,
                       const EnvironmentOptions &Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRAINING_SERVEENVIRONMENT_H
