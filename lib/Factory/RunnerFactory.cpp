//===- RunnerFactory.cpp - Creates runners from specs ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/RunnerFactory.h"

#include "Core/AddByName.h"
#include "Core/InvalidSpec.h"
#include "Factory/ComponentSchemes.h"
#include "Factory/ModuleLoader.h"
#include "Factory/ModuleSchemes.h"
#include "Support/PrintableText.h"

#include <algorithm>

using namespace MLBridge;

using RunnerOrError = Expected<std::unique_ptr<MLModelRunner>>;

void RunnerFactory::add(Scheme NewScheme) {
  addByName(Schemes, std::move(NewScheme));
}

Expected<std::pair<ModelSpec, const RunnerFactory::Scheme *>>
RunnerFactory::resolve(std::string_view Text) const {
  // Limit the number of decorators, because create() calls itself for each
  // decorator.
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
  if (!Found && Spec->Scheme == "builtin")
    return Error(
        ErrorCode::Unsupported,
        invalidSpec(Text, "expected a model that is linked into the program "
                          "and added to its factory (docs/guides/compile.md), "
                          "found none")
            .message());
  if (!Found) {
    const std::string Name = "'" + printable(Spec->Scheme) + "'";
    Error E = invalidSpec(
        Text, (isModuleScheme(Spec->Scheme)
                   ? "scheme " + Name + " needs a module"
                   : "unknown scheme " + Name + "; this build has " + Known) +
                  "; found " + modules::describeMissing(Spec->Scheme));
    return isComponentScheme(Spec->Scheme)
               ? Error(ErrorCode::Unsupported, E.message())
               : E;
  }
  if (Found->IsDecorator && Spec->Inner.empty())
    return invalidSpec(Text, "'" + Spec->Scheme +
                                 "' decorates another model: expected '|' and "
                                 "a spec after it");
  if (!Found->IsDecorator && !Spec->Inner.empty())
    return invalidSpec(Text, "'" + Spec->Scheme +
                                 "' is not a decorator, found '|" +
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
                 "pipe:/tmp/advisor, found a null pointer; is an environment "
                 "variable not set?");
  return create(std::string_view(Text));
}
