//===- RunnerModule.h - Schemes in a library of their own -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// RunnerModule: what a shared library exports to bring schemes with it that a
/// compiler was not built with. A spec `tvm:...` that no built-in scheme
/// matches has MLBridge-tvm.so loaded (`grpc+unix:` has MLBridge-grpc.so), in
/// compilers, in C and in Python alike: a runtime of a hundred megabytes is in
/// no process that does not ask for it, and a plug-in needs no new build for a
/// new runtime.
///
/// The file is looked for in the folder that the environment's MLBRIDGE_MODULES
/// names, then beside the library, plug-in or program that this library is
/// linked into, then wherever the dynamic linker looks.
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

/// C++ objects go through these functions, so both sides must be of one
/// version, and of one standard library.
struct RunnerModule {
  /// First, and a C string, so that every version can read it.
  const char *Version;
  /// Adds the schemes for runners. Called once for each factory that is not a
  /// copy of another.
  void (*AddRunners)(RunnerFactory &);
  /// Adds those by which trainers are met; null where there are none.
  void (*AddTraining)(EnvironmentServer &);
};

} // namespace MLBridge

/// Exports the module. Once a library.
#define MLBRIDGE_RUNNER_MODULE(AddRunners, AddTraining)                        \
  extern "C" __attribute__((visibility("default")))                            \
  const MLBridge::RunnerModule MLBridgeRunnerModule = {                        \
      MLBRIDGE_VERSION, AddRunners, AddTraining};

#endif // MLCOMPILERBRIDGE_EXTEND_RUNNERMODULE_H
