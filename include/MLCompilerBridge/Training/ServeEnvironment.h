//===- ServeEnvironment.h - Lets a trainer drive a compiler -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// serveEnvironment() over your own transport and SerDes: the training
/// direction, in which the model sends requests and the compiler replies. The
/// trainer uses `mlbridge.envs.CompilerEnv` (docs/guides/training.md).
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRAINING_SERVEENVIRONMENT_H
#define MLCOMPILERBRIDGE_TRAINING_SERVEENVIRONMENT_H

#include "MLCompilerBridge/SerDes/BaseSerDes.h"
#include "MLCompilerBridge/Training/Environment.h"
#include "MLCompilerBridge/Transport/Transport.h"

#include <string_view>

namespace MLBridge {

/// How long a compiler waits for its trainer.
struct EnvironmentOptions {
  /// For the connection.
  Duration ConnectTimeout = TransportOptions().ConnectTimeout;
  /// For the next command. By default a live trainer may take any time.
  Duration CommandTimeout = Duration::max();
};

/// Connects to the trainer at the other end of \p Channel and executes its
/// commands. Succeeds when the trainer sends `close`, disconnects or dies.
/// Errors of \p Env are sent to the trainer and end only the episode.
///
/// Errors: Timeout if the trainer did not connect, or sent no command, in time;
/// Malformed and others if a message cannot be understood.
///
/// EnvironmentServer.h does the same for a spec.
Error serveEnvironment(Environment &Env, Transport &Channel, BaseSerDes &Codec,
                       const EnvironmentOptions &Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRAINING_SERVEENVIRONMENT_H
