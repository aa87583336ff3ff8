//===- RunnerModule.h - Schemes in a shared library -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RunnerModule: the symbol with which a shared library adds schemes to
/// compilers that were built without them. A spec `tvm:...` that matches no
/// built-in scheme loads MLBridge-tvm.so (`grpc+unix:` loads MLBridge-grpc.so),
/// from C++, C and Python. So only processes that use a large runtime load it,
/// and a plug-in need not be rebuilt for a new runtime.
///
/// The module is searched for in the folder named by the environment variable
/// MLBRIDGE_MODULES, then beside the library, plug-in or program that this
/// library is linked into, then on the dynamic linker's search path.
/// \code
///   static void addRunners(RunnerFactory &Factory) { addTVM(Factory); }
///   MLBRIDGE_RUNNER_MODULE(addRunners, nullptr)
/// \endcode
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_EXTEND_RUNNERMODULE_H
#define MLCOMPILERBRIDGE_EXTEND_RUNNERMODULE_H

#include "MLCompilerBridge/Version.h"

namespace MLBridge {

class EnvironmentServer;
class RunnerFactory;

/// These functions take C++ objects, so both sides must have the same version
/// and use the same standard library.
struct RunnerModule {
  /// First, and a C string, so that every version can read it.
  const char *Version;
  /// Adds schemes of runners. Called once for each factory that is not a copy.
  void (*AddRunners)(RunnerFactory &);
  /// Adds schemes for trainers; null if the module has none.
  void (*AddTraining)(EnvironmentServer &);
};

} // namespace MLBridge

/// Exports the module. Use once per library.
#define MLBRIDGE_RUNNER_MODULE(AddRunners, AddTraining)                        \
  extern "C" __attribute__((visibility("default")))                            \
  const MLBridge::RunnerModule MLBridgeRunnerModule = {                        \
      MLBRIDGE_VERSION, AddRunners, AddTraining};

#endif // MLCOMPILERBRIDGE_EXTEND_RUNNERMODULE_H
