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

/// The schemes of modules for one factory and its copies, which share the
/// schemes' state. Any number of threads can use it at the same time.
class modules::ModuleSchemes {
public:
  /// The scheme of that name, or null. Valid as long as this object.
  Expected<const RunnerFactory::Scheme *> find(std::string_view Name);

private:
  std::mutex Mutex;
  /// All schemes of each module. Never removed.
  std::map<const RunnerModule *, std::vector<RunnerFactory::Scheme>> Loaded;
};

} // namespace MLBridge

#endif // MLBRIDGE_LIB_FACTORY_MODULESCHEMES_H
