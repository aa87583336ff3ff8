//===- RunnerFactory.cpp - From a model spec to a runner ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/RunnerFactory.h"

#include "Core/AddByName.h"
#include "Core/InvalidSpec.h"
#include "Factory/ModuleLoader.h"
#include "Factory/Schemes.h"
#include "Support/PrintableText.h"

#include <algorithm>
#include <map>
#include <mutex>

using namespace MLBridge;

using RunnerOrError = Expected<std::unique_ptr<MLModelRunner>>;

//===----------------------------------------------------------------------===//
// Schemes of modules
//===----------------------------------------------------------------------===//

/// The schemes of modules for one factory and its copies, which so share what
/// the schemes share. Used by any number of threads at a time.
class modules::ModuleSchemes {
public:
  /// The scheme of that name, or null. Valid as long as this is.
  Expected<const RunnerFactory::Scheme *> find(std::string_view Name);

private:
  std::mutex Mutex;
  /// By module, all that it has. Never removed.
  std::map<const RunnerModule *, std::vector<RunnerFactory::Scheme>> Loaded;
};

Expected<const RunnerFactory::Scheme *>
modules::ModuleSchemes::find(std::string_view Name) {
  Expected<const RunnerModule *> Module = loadModule(Name);
  if (!Module)
    return Module.takeError();
  if (!*Module)
    return nullptr;
  std::scoped_lock Lock(Mutex);
  auto Known = Loaded.find(*Module);
  if (Known == Loaded.end()) {
    RunnerFactory Added{RunnerFactory::NoSchemes()};
    (*Module)->AddRunners(Added);
    // All at once, or not at all: memory may run out in between.
    Known = Loaded.try_emplace(*Module, std::move(Added.Schemes)).first;
  }
  for (const RunnerFactory::Scheme &S : Known->second)
    if (S.Name == Name)
      return &S;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// The factory
//===----------------------------------------------------------------------===//

RunnerFactory::RunnerFactory()
    : Schemes(builtInSchemes()),
      Modules(std::make_shared<modules::ModuleSchemes>()) {}

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
    return isComponentScheme(Spec->Scheme)
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
