//===- RunnerFactory.h - Creates runners from specs -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines RunnerFactory, which creates runners from specs such as
/// `pipe:/tmp/advisor?serdes=json`.
///
/// A compiler that links or defines additional runners adds their schemes to
/// its RunnerFactory.
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

/// Creates runners from specs. A RunnerFactory is a copyable value. For an
/// unknown scheme, the factory loads a module, as RunnerModule.h describes.
class RunnerFactory {
public:
  using Create = std::function<Expected<std::unique_ptr<MLModelRunner>>(
      const ModelSpec &, const RunnerFactory &)>;
  using Inspect = std::function<Error(const ModelSpec &)>;
  struct Scheme {
    std::string Name;
    /// The line that describes the scheme in --help and in `mlbridge doctor`,
    /// such as "pipe:NAME?serdes=...".
    std::string Help;
    Create Make;
    /// True if the scheme decorates the runner of another spec, as in
    /// "name|SPEC".
    bool IsDecorator = false;
    /// Checks the path and the options of a spec without opening files or
    /// connections. The factory calls this function before Make, and in
    /// check(). If the function is null, only Make can report mistakes in a
    /// spec.
    Inspect Check = nullptr;
  };

  /// Creates a factory with the built-in schemes.
  RunnerFactory();

  /// Adds a scheme, or replaces the scheme with the same name.
  void add(Scheme NewScheme);
  Span<const Scheme> schemes() const { return Schemes; }
  /// Creates the runner for \p Spec. Every scheme accepts the option `timeout`.
  /// A decorator without this option uses the timeout of the decorated runner.
  /// If a scheme has the option `serdes`, its value is the name of one of
  /// formats().
  Expected<std::unique_ptr<MLModelRunner>> create(std::string_view Spec) const;
  /// Creates a runner as above. \p Spec is the value of an environment
  /// variable. If \p Spec is null, returns InvalidArgument.
  Expected<std::unique_ptr<MLModelRunner>> create(const char *Spec) const;
  /// Checks the syntax, schemes, paths and options of \p Spec, but creates no
  /// runner, file or connection. If a scheme is not built in, loads the
  /// scheme's module and the libraries that the module links. If a scheme has
  /// no Check function, checks only the option `timeout`.
  Error check(std::string_view Spec) const;

  /// The formats that the option `serdes` can select. A compiler can add more
  /// formats.
  SerDesFactory &formats() { return Formats; }
  const SerDesFactory &formats() const { return Formats; }

  /// The time that a runner waits for its model to start if the spec has no
  /// option `connect`.
  Duration connectTimeout() const { return ConnectTimeout; }
  void setConnectTimeout(Duration Timeout) { ConnectTimeout = Timeout; }

private:
  friend class modules::ModuleSchemes;
  /// Selects the constructor of a factory without schemes. A module adds its
  /// schemes to such a factory, which then has only the module's schemes.
  struct NoSchemes {};
  explicit RunnerFactory(NoSchemes) {}

  /// Parses and checks \p Spec and finds its scheme. Does not parse the spec
  /// after a decorator's `|`.
  Expected<std::pair<ModelSpec, const Scheme *>>
  resolve(std::string_view Spec) const;

  std::vector<Scheme> Schemes;
  /// The loaded modules. All copies of this factory share them.
  std::shared_ptr<modules::ModuleSchemes> Modules;
  SerDesFactory Formats;
  Duration ConnectTimeout = TransportOptions().ConnectTimeout;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_RUNNERFACTORY_H
