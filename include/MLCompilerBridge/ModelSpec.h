//===- ModelSpec.h - One string that names a model --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelSpec and RunnerFactory: from `pipe:/tmp/advisor?serdes=json` to a
/// runner. A spec is `scheme:path?key=value&key=value`; reserved characters
/// (`% ? & = |`) in a path or value are percent-encoded. A decorator stands
/// before the spec it decorates: `record:log.bin|fallback|pipe:/tmp/advisor`.
///
/// There is no global registry: a compiler that links more runners, or has one
/// of its own, adds their schemes to a RunnerFactory value.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_MODELSPEC_H
#define MLCOMPILERBRIDGE_MODELSPEC_H

#include "MLCompilerBridge/MLModelRunner.h"
#include "MLCompilerBridge/SerDesFactory.h"
#include "MLCompilerBridge/Transport.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace MLBridge {

namespace modules {
class ModuleSchemes;
} // namespace modules

/// A model spec, taken apart and percent-decoded.
struct ModelSpec {
  std::string Scheme;
  std::string Path;
  std::vector<std::pair<std::string, std::string>> Options;
  /// For a decorator: the spec behind the first `|`, as it was written.
  std::string Inner;

  static Expected<ModelSpec> parse(std::string_view Text);

  /// An InvalidArgument that names the first option that is not in \p Known.
  Error checkOptions(Span<const std::string_view> Known) const;
  /// The value of option \p Key, or \p Default.
  std::string_view option(std::string_view Key, std::string_view Default) const;
  /// `5s`, `200ms`, `50us`, `inf`.
  Expected<Duration> duration(std::string_view Key, Duration Default) const;
  /// A number of bytes: `65536`, `64KiB`, `1GiB`.
  Expected<std::size_t> bytes(std::string_view Key, std::size_t Default) const;
  /// A whole number of 1 or more.
  Expected<std::size_t> number(std::string_view Key, std::size_t Default) const;
  /// The options that every inter-process runner takes: `connect`,
  /// `max-message`.
  Expected<TransportOptions> transportOptions() const;
};

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

#endif // MLCOMPILERBRIDGE_MODELSPEC_H
