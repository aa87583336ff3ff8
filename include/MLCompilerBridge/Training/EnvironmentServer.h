//===- EnvironmentServer.h - Trainers by spec -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From the spec that a trainer gives to the conversation with it. All that a
/// compiler needs beside its Environment:
/// \code
///   if (Error E = serveEnvironment(Env, std::getenv("MLBRIDGE_SPEC")))
///     return fail(E);
/// \endcode
/// The other side is `mlbridge.envs.CompilerEnv` (docs/training.md).
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_TRAINING_ENVIRONMENTSERVER_H
#define MLCOMPILERBRIDGE_TRAINING_ENVIRONMENTSERVER_H

#include "MLCompilerBridge/Extend/ModelSpec.h"
#include "MLCompilerBridge/SerDes/SerDesFactory.h"
#include "MLCompilerBridge/Training/ServeEnvironment.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace MLBridge {

/// Meets the trainer that \p Spec names and does what it says, until it says
/// `close`, ends or dies: these are success. What \p Env fails at is told to
/// the trainer, and ends the episode only.
///
/// Specs are those of the runners, `pipe:NAME?serdes=json` or `shm:NAME`; the
/// option `timeout` is how long the trainer may take to say something, for ever
/// unless given. Errors: Timeout when the trainer did not appear or has not
/// spoken in time; InvalidArgument for the spec; Malformed and others when the
/// two sides do not understand each other.
Error serveEnvironment(Environment &Env, std::string_view Spec);
/// The same for the value of an environment variable, which the trainer sets:
/// where \p Spec is null, the InvalidArgument says how such a program is
/// started.
Error serveEnvironment(Environment &Env, const char *Spec);

/// Serves environments by spec. A value, as RunnerFactory is: a compiler that
/// links more transports, or has one of its own, adds their schemes to it.
class EnvironmentServer {
public:
  struct Scheme {
    std::string Name;
    /// Serves at a spec until the trainer is done. The spec is a well-formed
    /// one of this scheme; its `serdes` is one of \p Formats.
    std::function<Error(Environment &, std::string_view Spec,
                        const SerDesFactory &Formats)>
        Serve;
  };

  /// Knows the schemes that are built in; others are looked for in modules
  /// (RunnerModule.h).
  EnvironmentServer();

  /// Adds a scheme, or replaces the one of the same name.
  void add(Scheme NewScheme);
  /// The SerDes that specs may name; others may be added.
  SerDesFactory &formats() { return Formats; }
  /// serveEnvironment() with these schemes.
  Error serve(Environment &Env, std::string_view Spec) const;
  Error serve(Environment &Env, const char *Spec) const;

private:
  const Scheme *find(std::string_view Name) const;

  std::vector<Scheme> Schemes;
  SerDesFactory Formats;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRAINING_ENVIRONMENTSERVER_H
