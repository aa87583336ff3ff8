//===- RunnerFactory.h - Creates runners from specs -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RunnerFactory: creates runners from specs such as
/// `pipe:/tmp/advisor?serdes=json`.
///
/// A compiler that links or defines more runners adds their schemes to its
/// RunnerFactory.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_EXTEND_RUNNERFACTORY_H
#define MLCOMPILERBRIDGE_EXTEND_RUNNERFACTORY_H

#include "MLCompilerBridge/Extend/ModelSpec.h"
#include "MLCompilerBridge/MLModelRunner.h"
#include "MLCompilerBridge/SerDes/SerDesFactory.h"
#include "MLCompilerBridge/Transport/Transport.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace MLBridge {

namespace modules {
class ModuleSchemes;
} // namespace modules

/// Creates runners from specs. A copyable value. For an unknown scheme, it
/// loads a module: see RunnerModule.h.
class RunnerFactory {
public:
  using Create = std::function<Expected<std::unique_ptr<MLModelRunner>>(
      const ModelSpec &, const RunnerFactory &)>;
  using Inspect = std::function<Error(const ModelSpec &)>;
  struct Scheme {
    std::string Name;
    /// One line for --help and `mlbridge doctor`: "pipe:NAME?serdes=...".
    std::string Help;
    Create Make;
    /// Whether the scheme precedes the spec of another runner: "name|SPEC".
    bool IsDecorator = false;
    /// Checks the path and the options of a spec without opening files or
    /// connections. Called before Make and when a command line is parsed. If
    /// null, mistakes show when a runner is created.
    Inspect Check = nullptr;
  };

  /// Contains the built-in schemes.
  RunnerFactory();

  /// Adds a scheme, or replaces the one with the same name.
  void add(Scheme NewScheme);
  Span<const Scheme> schemes() const { return Schemes; }
  /// Creates the runner for \p Spec. Every scheme accepts the option `timeout`;
  /// a decorator without it uses the timeout of the runner that it decorates.
  /// The option `serdes`, if the scheme has it, names one of formats().
  Expected<std::unique_ptr<MLModelRunner>> create(std::string_view Spec) const;
  /// The same for the value of an environment variable; null is an
  /// InvalidArgument.
  Expected<std::unique_ptr<MLModelRunner>> create(const char *Spec) const;
  /// Checks \p Spec as create() does: its syntax, schemes, paths and options.
  /// Creates no runner, file or connection, but loads the module of a scheme
  /// that is not built in, with the libraries that the module links. For a
  /// scheme without Check, checks only the option `timeout`.
  Error check(std::string_view Spec) const;

  /// The formats that the option `serdes` may name. Add those of other
  /// components or your own.
  SerDesFactory &formats() { return Formats; }
  const SerDesFactory &formats() const { return Formats; }

  /// How long runners wait for their models to appear if the spec has no option
  /// `connect`.
  Duration connectTimeout() const { return ConnectTimeout; }
  void setConnectTimeout(Duration Timeout) { ConnectTimeout = Timeout; }

private:
  friend class modules::ModuleSchemes;
  /// Creates a factory without schemes, to see which ones a module adds.
  struct NoSchemes {};
  explicit RunnerFactory(NoSchemes) {}

  /// Parses and checks \p Spec and finds its scheme. Leaves the spec after a
  /// decorator's `|` unparsed.
  Expected<std::pair<ModelSpec, const Scheme *>>
  resolve(std::string_view Spec) const;

  std::vector<Scheme> Schemes;
  /// Shared with copies of this factory.
  std::shared_ptr<modules::ModuleSchemes> Modules;
  SerDesFactory Formats;
  Duration ConnectTimeout = TransportOptions().ConnectTimeout;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_RUNNERFACTORY_H
