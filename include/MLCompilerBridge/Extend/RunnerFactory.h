//===- RunnerFactory.h - From a model spec to a runner ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RunnerFactory: from `pipe:/tmp/advisor?serdes=json` to a runner.
///
/// There is no global registry: a compiler that links more runners, or has one
/// of its own, adds their schemes to a RunnerFactory value.
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
/// A scheme that it does not know is looked for in a module: RunnerModule.h.
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
    /// Whether it stands before the spec of another runner: "name|SPEC".
    bool IsDecorator = false;
    /// What is wrong with the path or the options of a spec, found without
    /// opening or connecting anything. Comes before Make, and when a command
    /// line is read; without it, mistakes show when a runner is made.
    Inspect Check = nullptr;
  };

  /// Knows the schemes that are built in.
  RunnerFactory();

  /// Adds a scheme, or replaces the one of the same name.
  void add(Scheme NewScheme);
  Span<const Scheme> schemes() const { return Schemes; }
  /// The runner for \p Spec. The option `timeout` is understood for every
  /// scheme; a decorator without one has that of what it decorates. The option
  /// `serdes`, where a scheme has one, names one of formats().
  Expected<std::unique_ptr<MLModelRunner>> create(std::string_view Spec) const;
  /// The same for the value of an environment variable; null is an
  /// InvalidArgument.
  Expected<std::unique_ptr<MLModelRunner>> create(const char *Spec) const;
  /// What create() would find wrong with the text of \p Spec: its form, and
  /// the schemes, paths and options in it. Nothing is made, no file and no
  /// connection; but the module of a scheme that is not built in is loaded, and
  /// with it the libraries that the module links. A scheme that was added
  /// without a Check is looked at for its `timeout` only.
  Error check(std::string_view Spec) const;

  /// What the option `serdes` may name. Add to it to speak a format of another
  /// component or of your own.
  SerDesFactory &formats() { return Formats; }
  const SerDesFactory &formats() const { return Formats; }

  /// How long the runners wait for their models to appear where the spec has no
  /// `connect`.
  Duration connectTimeout() const { return ConnectTimeout; }
  void setConnectTimeout(Duration Timeout) { ConnectTimeout = Timeout; }

private:
  friend class modules::ModuleSchemes;
  /// One that knows no scheme, to see what a module adds.
  struct NoSchemes {};
  explicit RunnerFactory(NoSchemes) {}

  /// \p Spec taken apart, and its scheme; what is behind a decorator's `|` is
  /// left as it is. The rest has been checked.
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
