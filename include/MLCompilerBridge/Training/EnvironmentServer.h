//===- EnvironmentServer.h - Trainers by spec -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// EnvironmentServer: from the spec that a trainer gives to the conversation
/// with it.
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
