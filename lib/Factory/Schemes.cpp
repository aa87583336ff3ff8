//===- Schemes.cpp - The built-in schemes ---------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the schemes that every RunnerFactory has. A scheme needs a function
/// that checks a spec, a function that creates a runner, and one line in the
/// constructor of RunnerFactory. A scheme for a transport needs only one line
/// of the table in InterProcessSpec.cpp.
///
//===----------------------------------------------------------------------===//

#include "Core/InvalidSpec.h"
#include "Factory/InterProcessSpec.h"
#include "Factory/ModuleSchemes.h"
#include "MLCompilerBridge/Extend/AOTSchemes.h"
#include "MLCompilerBridge/Runners/FallbackModelRunner.h"
#include "MLCompilerBridge/Runners/InterProcessModelRunner.h"
#include "MLCompilerBridge/Runners/NoneModelRunner.h"
#include "MLCompilerBridge/Runners/RecordModelRunner.h"
#include "MLCompilerBridge/Runners/ReplayModelRunner.h"

using namespace MLBridge;

using RunnerOrError = Expected<std::unique_ptr<MLModelRunner>>;

/// Checks the spec of a scheme that accepts no path.
static Error checkNoPath(const ModelSpec &Spec) {
  if (Spec.Path.empty())
    return Error::success();
  return invalidSpec(Spec.Scheme + ":" + Spec.Path,
                     "'" + Spec.Scheme + "' takes no path");
}

static Error checkPath(const ModelSpec &Spec, std::string_view What) {
  if (!Spec.Path.empty())
    return Error::success();
  return invalidSpec(Spec.Scheme, "expected " + std::string(What) + " after '" +
                                      Spec.Scheme + ":'");
}

/// Checks the spec of a scheme that accepts neither a path nor options.
static Error checkBare(const ModelSpec &Spec) {
  if (Error E = checkNoPath(Spec))
    return E;
  return Spec.checkOptions({});
}

static RunnerOrError makeNone(const ModelSpec &, const RunnerFactory &) {
  return std::make_unique<NoneModelRunner>();
}

static RunnerOrError makeFallback(const ModelSpec &Spec,
                                  const RunnerFactory &Factory) {
  RunnerOrError Inner = Factory.create(Spec.Inner);
  if (!Inner)
    return Inner;
  return std::make_unique<FallbackModelRunner>(std::move(*Inner));
}

static Error checkRecord(const ModelSpec &Spec) {
  if (Error E = checkPath(Spec, "the log's file name"))
    return E;
  return Spec.checkOptions({});
}

static RunnerOrError makeRecord(const ModelSpec &Spec,
                                const RunnerFactory &Factory) {
  // Create the inner runner before the log, so that an invalid spec does not
  // truncate an existing log.
  RunnerOrError Inner = Factory.create(Spec.Inner);
  if (!Inner)
    return Inner;
  return RecordModelRunner::create(Spec.Path, std::move(*Inner));
}

/// Parses the option `until`, the number of requests that the log decides.
static Expected<std::optional<std::size_t>> replayUntil(const ModelSpec &Spec) {
  const std::string_view Until = Spec.option("until", {});
  if (!Until.data())
    return std::optional<std::size_t>();
  if (Until == "end")
    return std::optional(ReplayModelRunner::EndOfLog);
  return Spec.number("until", 1);
}

static Error checkReplay(const ModelSpec &Spec) {
  if (Error E = checkPath(Spec, "the log's file name"))
    return E;
  static constexpr std::string_view Known[] = {"until"};
  if (Error E = Spec.checkOptions(Known))
    return E;
  return replayUntil(Spec).takeError();
}

static RunnerOrError makeReplay(const ModelSpec &Spec, const RunnerFactory &) {
  return ReplayModelRunner::create(Spec.Path, *replayUntil(Spec));
}

static RunnerOrError makeInterProcessRunner(const ModelSpec &Spec,
                                            const RunnerFactory &Factory) {
  Expected<InterProcessParts> Parts =
      makeInterProcess(Spec, Factory.formats(), Factory.connectTimeout());
  if (!Parts)
    return Parts.takeError();
  return std::make_unique<InterProcessModelRunner>(
      std::move(Parts->Channel), std::move(Parts->Codec),
      Parts->Options.ConnectTimeout);
}

RunnerFactory::RunnerFactory()
    : Modules(std::make_shared<modules::ModuleSchemes>()) {
  add({"none", "none: leaves every decision to the compiler", makeNone,
       /*IsDecorator=*/false, checkBare});
  for (const InterProcessScheme &Known : interProcessSchemes())
    add({std::string(Known.Name), std::string(Known.Help),
         makeInterProcessRunner, /*IsDecorator=*/false, checkInterProcess});
  add(aotScheme());
  add({"record",
       "record:FILE|SPEC: logs the features that SPEC receives and the "
       "decisions",
       makeRecord, /*IsDecorator=*/true, checkRecord});
  add({"replay",
       "replay:FILE?until=N|end: replies with the decisions in the log FILE; "
       "after N requests, leaves every decision to the compiler",
       makeReplay, /*IsDecorator=*/false, checkReplay});
  add({"fallback",
       "fallback|SPEC: after SPEC fails, leaves every decision to "
       "the compiler",
       makeFallback, /*IsDecorator=*/true, checkBare});
}

RunnerOrError MLBridge::createModelRunner(std::string_view Spec) {
  return RunnerFactory().create(Spec);
}

RunnerOrError MLBridge::createModelRunner(const char *Spec) {
  return RunnerFactory().create(Spec);
}
