//===- ModuleLoader.h - Schemes out of MLBridge-NAME.so ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Finds and loads the module for a scheme that is not built in.
/// RunnerModule.h says where it is looked for.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_MODULES_MODULELOADER_H
#define MLBRIDGE_LIB_MODULES_MODULELOADER_H

#include "MLCompilerBridge/ModelSpec.h"
#include "MLCompilerBridge/RunnerModule.h"

#include <map>
#include <mutex>

namespace MLBridge::modules {

/// "MLBridge-grpc.so" for `grpc` and for `grpc+unix`.
std::string moduleFileFor(std::string_view Scheme);

/// Whether a component of this project brings that scheme, so that its lack
/// says something of the installation and not of the spec.
bool isComponentScheme(std::string_view Scheme);

/// The module for \p Scheme, which stays loaded for good: who knows where its
/// code is in use. Null where there is none; Unsupported where there is one
/// that cannot be used.
Expected<const RunnerModule *> loadModule(std::string_view Scheme);

/// The schemes of modules for one factory and its copies, which so share what
/// the schemes share. Used by any number of threads at a time.
class ModuleSchemes {
public:
  /// The scheme of that name, or null. Valid as long as this is.
  Expected<const RunnerFactory::Scheme *> find(std::string_view Name);

private:
  std::mutex Mutex;
  /// By module, all that it has. Never removed.
  std::map<const RunnerModule *, std::vector<RunnerFactory::Scheme>> Loaded;
};

} // namespace MLBridge::modules

#endif // MLBRIDGE_LIB_MODULES_MODULELOADER_H
