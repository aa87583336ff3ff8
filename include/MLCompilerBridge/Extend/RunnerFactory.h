//===- RunnerFactory.h - From a model spec to a runner ----------*- C++ -*-===//
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
/// There is no global registry. A compiler adds its own or further runners as
/// schemes to a RunnerFactory, which is a value.
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

/// Makes runners from specs. A value: copy it, add to it, keep it anywhere.
///
/// For unknown schemes it searches modules: RunnerModule.h.
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
    /// True if it decorates another runner: "name|SPEC".
    bool IsDecorator = false;
    /// Checks the path and the options of a spec without opening or connecting
    /// anything. Called before Make, and while a command line is parsed.
    /// Without it, errors appear when a runner is made.
    Inspect Check = nullptr;
  };

  /// Has the built-in schemes.
  RunnerFactory();

  /// Adds a scheme, or replaces the scheme of the same name.
  void add(Scheme NewScheme);
  Span<const Scheme> schemes() const { return Schemes; }
  /// Makes the runner for \p Spec. Every scheme accepts the option `timeout`; a
  /// decorator without one uses that of the decorated runner. The option
  /// `serdes`, if a scheme accepts it, names one of formats().
  Expected<std::unique_ptr<MLModelRunner>> create(std::string_view Spec) const;
  /// The same for the value of an environment variable; null is an
  /// InvalidArgument.
  Expected<std::unique_ptr<MLModelRunner>> create(const char *Spec) const;
  /// Checks the text of \p Spec: its syntax, schemes, paths and options. Opens
  /// no file and connects to nothing, but loads the module of a scheme that is
  /// not built in, with the libraries that the module links. For a scheme
  /// without a Check, only `timeout` is checked.
  Error check(std::string_view Spec) const;

  /// The SerDes that the option `serdes` may name. Add those of other
  /// components, or your own.
  SerDesFactory &formats() { return Formats; }
  const SerDesFactory &formats() const { return Formats; }

  /// How long runners wait for their models to appear if the spec lacks
  /// `connect`.
  Duration connectTimeout() const { return ConnectTimeout; }
  void setConnectTimeout(Duration Timeout) { ConnectTimeout = Timeout; }

private:
  friend class modules::ModuleSchemes;
  /// Makes a factory without schemes, to collect those of a module.
  struct NoSchemes {};
  explicit RunnerFactory(NoSchemes) {}

  /// Parses \p Spec and finds its scheme. The spec after a decorator's `|` is
  /// not parsed; everything else is checked.
  Expected<std::pair<ModelSpec, const Scheme *>>
  resolve(std::string_view Spec) const;

  std::vector<Scheme> Schemes;
  /// Shared with copies.
  std::shared_ptr<modules::ModuleSchemes> Modules;
  SerDesFactory Formats;
  Duration ConnectTimeout = TransportOptions().ConnectTimeout;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_RUNNERFACTORY_H
