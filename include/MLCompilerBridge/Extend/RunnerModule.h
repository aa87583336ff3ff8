//===- RunnerModule.h - Schemes in a shared library -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RunnerModule: what a shared library exports to add schemes to compilers that
/// were built without them. A spec `tvm:...` that matches no built-in scheme
/// loads MLBridge-tvm.so (`grpc+unix:` loads MLBridge-grpc.so), in compilers,
/// in C and in Python. So a runtime of a hundred megabytes is loaded only on
/// request, and a plug-in need not be rebuilt for a new runtime.
///
/// The file is searched for in this order: in the folder that the environment
/// variable MLBRIDGE_MODULES names; in the folder of the library, plug-in or
/// program that contains this library; in the installation's library folder,
/// first relative to that folder, then at the prefix that this library was
/// configured with; and wherever the dynamic linker searches.
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

/// C++ objects pass through these functions, so both sides must have the same
/// version of this library and the same standard library.
struct RunnerModule {
  /// The first member, and a C string, so that every version can read it.
  const char *Version;
  /// Adds the schemes for runners. Called once for each factory that is not a
  /// copy.
  void (*AddRunners)(RunnerFactory &);
  /// Adds the schemes for trainers; null if there are none.
  void (*AddTraining)(EnvironmentServer &);
};

} // namespace MLBridge

/// Exports the module. Use it once in a library.
#define MLBRIDGE_RUNNER_MODULE(AddRunners, AddTraining)                        \
  extern "C" __attribute__((visibility("default")))                            \
  const MLBridge::RunnerModule MLBridgeRunnerModule = {                        \
      MLBRIDGE_VERSION, AddRunners, AddTraining};

#endif // MLCOMPILERBRIDGE_EXTEND_RUNNERMODULE_H
