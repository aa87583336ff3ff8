//===- EnvironmentServer.h - Serves an environment at a spec ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines serveEnvironment(), which connects to the trainer that a spec names
/// and serves an Environment to the trainer. A compiler needs only its
/// Environment and this call:
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

/// Connects to the trainer that \p Spec names and executes the trainer's
/// commands. Returns success when the trainer sends `close`, disconnects or
/// dies. Errors of \p Env are sent to the trainer. They end the episode, but
/// not the session.
///
/// \p Spec has the form of a runner's spec, such as `pipe:NAME?serdes=json` or
/// `shm:NAME`. The option `timeout` limits the wait for each command, such as
/// reset or step. The default is no limit.
///
/// Returns one of these errors:
/// - Timeout if the trainer does not connect or send a command in time.
/// - InvalidArgument if \p Spec is invalid.
/// - Malformed or another error if a message cannot be decoded.
Error serveEnvironment(Environment &Env, std::string_view Spec);
/// Serves \p Env as above. \p Spec is the value of an environment variable,
/// which the trainer sets. If \p Spec is null, returns InvalidArgument with a
/// message about how to start the program.
Error serveEnvironment(Environment &Env, const char *Spec);

/// Serves an environment to the trainer that a spec names. An EnvironmentServer
/// is a copyable value. A compiler can add schemes for more transports.
class EnvironmentServer {
public:
  struct Scheme {
    std::string Name;
    /// Serves the environment until the trainer has finished. \p Spec is a
    /// well-formed spec of this scheme. The option `serdes` names one of
    /// \p Formats.
    std::function<Error(Environment &, std::string_view Spec,
                        const SerDesFactory &Formats)>
        Serve;
  };

  /// Creates a server with the built-in schemes. For other schemes, serve()
  /// loads modules (RunnerModule.h).
  EnvironmentServer();

  /// Adds a scheme, or replaces the scheme with the same name.
  void add(Scheme NewScheme);
  /// Returns the formats that the option `serdes` can select. A compiler can
  /// add more formats.
  SerDesFactory &formats() { return Formats; }
  /// Serves \p Env as serveEnvironment() does, with the schemes of this object.
  Error serve(Environment &Env, std::string_view Spec) const;
  Error serve(Environment &Env, const char *Spec) const;

private:
  const Scheme *find(std::string_view Name) const;

  std::vector<Scheme> Schemes;
  SerDesFactory Formats;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_TRAINING_ENVIRONMENTSERVER_H
