//===- RunnerFactory.cpp - From a scheme's name to a runner ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The schemes of this library. Each is one function that looks at a spec, one
/// that makes a runner of it, and one line in RunnerFactory's constructor.
///
//===----------------------------------------------------------------------===//

#include "Core/AddByName.h"
#include "Core/InvalidSpec.h"
#include "MLCompilerBridge/AOTModel.h"
#include "MLCompilerBridge/FallbackModelRunner.h"
#include "MLCompilerBridge/InterProcessModelRunner.h"
#include "MLCompilerBridge/ModelSpec.h"
#include "MLCompilerBridge/NoneModelRunner.h"
#include "MLCompilerBridge/RecordModelRunner.h"
#include "Modules/ModuleLoader.h"
#include "Runners/InterProcessSpec.h"
#include "Support/PrintableText.h"

#include <algorithm>

using namespace MLBridge;

using RunnerOrError = Expected<std::unique_ptr<MLModelRunner>>;

//===----------------------------------------------------------------------===//
// The schemes
//===----------------------------------------------------------------------===//

/// For a scheme that is complete without a path.
static Error checkNoPath(const ModelSpec &Spec) {
  if (Spec.Path.empty())
    return Error::success();
  return invalidSpec(Spec.Scheme + ":" + Spec.Path,
                     "'" + Spec.Scheme + "' takes no path");
}

static Error checkPath(const ModelSpec &Spec, std::string_view What) {
  if (!Spec.Path.empty())
    return Error::success();
  return invalidSpec(Spec.Scheme, "expected " + std::string(What) +
                                      " behind '" + Spec.Scheme + ":'");
}

/// For a scheme that is complete by its name.
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
  // Before the log is created: a wrong spec should not truncate an old one.
  RunnerOrError Inner = Factory.create(Spec.Inner);
  if (!Inner)
    return Inner;
  return RecordModelRunner::create(Spec.Path, std::move(*Inner));
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
  addAOT(*this);
  add({"record",
       "record:FILE|SPEC: writes what SPEC is asked and what was "
       "decided to a log",
       makeRecord, /*IsDecorator=*/true, checkRecord});
  add({"fallback",
       "fallback|SPEC: once SPEC fails, leaves every decision to "
       "the compiler",
       makeFallback, /*IsDecorator=*/true, checkBare});
}

//===----------------------------------------------------------------------===//
// The factory
//===----------------------------------------------------------------------===//

void RunnerFactory::add(Scheme NewScheme) {
  addByName(Schemes, std::move(NewScheme));
}

Expected<std::pair<ModelSpec, const RunnerFactory::Scheme *>>
RunnerFactory::resolve(std::string_view Text) const {
  // Decorators are made from the inside out, by recursion.
  constexpr auto MaxDecorators = 32;
  if (std::ranges::count(Text, '|') > MaxDecorators)
    return invalidSpec(Text, "more than " + std::to_string(MaxDecorators) +
                                 " decorators");

  Expected<ModelSpec> Spec = ModelSpec::parse(Text);
  if (!Spec)
    return Spec.takeError();

  const Scheme *Found = nullptr;
  std::string Known;
  for (const Scheme &S : Schemes) {
    if (S.Name == Spec->Scheme)
      Found = &S;
    Known += (Known.empty() ? "" : ", ") + S.Name;
  }
  if (!Found) {
    Expected<const Scheme *> InModule = Modules->find(Spec->Scheme);
    if (!InModule)
      return InModule.takeError();
    Found = *InModule;
  }
  if (!Found) {
    Error E = invalidSpec(Text, "unknown scheme '" + printable(Spec->Scheme) +
                                    "'; this build has " + Known +
                                    ", and there is no module " +
                                    modules::moduleFileFor(Spec->Scheme));
    return modules::isComponentScheme(Spec->Scheme)
               ? Error(ErrorCode::Unsupported, E.message())
               : E;
  }
  if (Found->IsDecorator && Spec->Inner.empty())
    return invalidSpec(Text, "'" + Spec->Scheme +
                                 "' stands before the spec of another model: "
                                 "expected '|' and a spec behind it");
  if (!Found->IsDecorator && !Spec->Inner.empty())
    return invalidSpec(Text, "'" + Spec->Scheme +
                                 "' stands before no other spec, found '|" +
                                 printable(Spec->Inner) + "'");
  if (Error E = Spec->duration("timeout", Duration::zero()).takeError())
    return E;
  if (Found->Check)
    if (Error E = Found->Check(*Spec))
      return E;
  if (std::string_view Format = Spec->option("serdes", {}); Format.data())
    if (Error E = Formats.create(Format, SerDes::Side::Compiler).takeError())
      return E;
  return std::pair(std::move(*Spec), Found);
}

Error RunnerFactory::check(std::string_view Text) const {
  std::string Left(Text);
  for (;;) {
    auto Resolved = resolve(Left);
    if (!Resolved)
      return Resolved.takeError();
    Left = std::move(Resolved->first.Inner);
    if (Left.empty())
      return Error::success();
  }
}

RunnerOrError RunnerFactory::create(std::string_view Text) const {
  auto Resolved = resolve(Text);
  if (!Resolved)
    return Resolved.takeError();
  auto &[Spec, Found] = *Resolved;

  Expected<Duration> Timeout = Spec.duration("timeout", Duration::zero());
  if (!Timeout)
    return Timeout.takeError();
  RunnerOrError Runner = Found->Make(Spec, *this);
  if (Runner && !Spec.option("timeout", {}).empty())
    (*Runner)->setTimeout(*Timeout);
  return Runner;
}

RunnerOrError RunnerFactory::create(const char *Text) const {
  if (!Text)
    return Error(ErrorCode::InvalidArgument,
                 "the model spec is missing: expected one such as "
                 "pipe:/tmp/advisor, found a null pointer; is a variable of "
                 "the environment not set?");
  return create(std::string_view(Text));
}

RunnerOrError MLBridge::createModelRunner(std::string_view Spec) {
  return RunnerFactory().create(Spec);
}

RunnerOrError MLBridge::createModelRunner(const char *Spec) {
  return RunnerFactory().create(Spec);
}
