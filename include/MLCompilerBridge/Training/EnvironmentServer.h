//===- EnvironmentServer.h - Serves an environment at a spec ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Connects to the trainer that a spec names and serves an Environment to it. A
/// compiler needs this and its Environment:
/// \code
///   if (Error E = serveEnvironment(Env, std::getenv("MLBRIDGE_SPEC")))
///     return fail(E);
/// \endcode
/// The trainer uses `mlbridge.envs.CompilerEnv` (docs/guides/training.md).
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

/// Connects to the trainer that \p Spec names and executes its commands.
/// Succeeds when the trainer sends `close`, disconnects or dies. Errors of \p
/// Env are sent to the trainer and end only the episode.
///
/// Specs are those of the runners, such as `pipe:NAME?serdes=json` or
/// `shm:NAME`. The option `timeout` limits the wait for each command; default:
/// no limit.
///
/// Errors: Timeout if the trainer did not connect, or sent no command, in time;
/// InvalidArgument for a bad spec; Malformed and others if a message cannot be
/// understood.
Error serveEnvironment(Environment &Env, std::string_view Spec);
/// The same for the value of an environment variable, which the trainer sets.
/// If \p Spec is null, the InvalidArgument says how to start such a program.
Error serveEnvironment(Environment &Env, const char *Spec);

/// Serves environments by spec. A value, like RunnerFactory: a compiler can add
/// more transports, its own or a component's, as schemes.
class EnvironmentServer {
public:
  struct Scheme {
    std::string Name;
    /// Serves at \p Spec until the trainer has finished. \p Spec is a
    /// well-formed spec of this scheme; its `serdes` is one of \p Formats.
    std::function<Error(Environment &, std::string_view Spec,
                        const SerDesFactory &Formats)>
        Serve;
  };

  /// Knows the built-in schemes; serve() loads modules for others
  /// (RunnerModule.h).
  EnvironmentServer();

  /// Adds a scheme, or replaces the scheme of the same name.
  void add(Scheme NewScheme);
  /// The SerDes that specs may name. More can be added.
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
