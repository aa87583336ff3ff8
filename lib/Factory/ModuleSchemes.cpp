//===- ModuleSchemes.cpp - Schemes that modules add -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Factory/ModuleSchemes.h"

#include "Factory/ModuleLoader.h"
#include "Support/PrintableText.h"

using namespace MLBridge;

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
    // Insert all schemes of the module in one step. Otherwise, Loaded could
    // have only some of them if memory runs out.
    Known = Loaded.try_emplace(*Module, std::move(Added.Schemes)).first;
  }
  std::string Names;
  for (const RunnerFactory::Scheme &S : Known->second) {
    if (S.Name == Name)
      return &S;
    Names += (Names.empty() ? "" : ", ") + S.Name;
  }
  return Error(ErrorCode::InvalidArgument,
               "scheme '" + printable(Name) + "': " + moduleFileFor(Name) +
                   " has " + (Names.empty() ? "no scheme" : "only " + Names));
}
