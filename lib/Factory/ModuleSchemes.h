//===- ModuleSchemes.h - Schemes that modules add ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_FACTORY_MODULESCHEMES_H
#define MLBRIDGE_LIB_FACTORY_MODULESCHEMES_H

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/Extend/RunnerModule.h"

#include <map>
#include <mutex>
#include <string_view>
#include <vector>

namespace MLBridge {

/// The schemes from modules for one factory and its copies, which share this
/// object. Any number of threads can use the object at the same time.
class modules::ModuleSchemes {
public:
  /// Returns the scheme \p Name, or null if no module for it exists. Loads the
  /// module if necessary, and fails if the module lacks the scheme. The pointer
  /// is valid while this object exists.
  Expected<const RunnerFactory::Scheme *> find(std::string_view Name);

private:
  std::mutex Mutex;
  /// The schemes of each loaded module. Entries are never removed, because
  /// find() returns pointers to them.
  std::map<const RunnerModule *, std::vector<RunnerFactory::Scheme>> Loaded;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_FACTORY_MODULESCHEMES_H
