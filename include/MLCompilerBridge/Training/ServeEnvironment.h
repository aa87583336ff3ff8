//===- ServeEnvironment.h - Lets a trainer drive a compiler -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// serveEnvironment() over a transport and a SerDes of your own: the training
/// direction, in which the model asks and the compiler answers. The other side
/// is `mlbridge.envs.CompilerEnv` (docs/training.md).
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
  /// For it to appear.
  Duration ConnectTimeout = TransportOptions().ConnectTimeout;
  /// For its next command: a trainer may think for as long as it is alive.
  Duration CommandTimeout = Duration::max();
};

/// Meets the trainer at the other end of \p Channel and does what it says,
/// until it says `close`, ends or dies: these are success. What \p Env fails at
/// is told to the trainer, and ends the episode only. Errors: Timeout when the
/// trainer did not appear or has not spoken in time; Malformed and others when
/// the two sides do not understand each other.
///
/// EnvironmentServer.h has the same for a spec.
Error serveEnvironment(Environment &Env, Transport &Channel, BaseSerDes &Codec,
                       const EnvironmentOptions &Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRAINING_SERVEENVIRONMENT_H
