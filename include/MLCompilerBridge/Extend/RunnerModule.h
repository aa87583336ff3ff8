//===- RunnerModule.h - Schemes in a shared library -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines RunnerModule. A module is a shared library that exports a
/// RunnerModule, and so adds schemes to compilers that were built without them.
/// If a spec names a scheme that is not built in, such as `tvm:`, the library
/// loads the module MLBridge-tvm.so. The part of a scheme's name before `+`
/// selects the module, so `grpc+unix:` loads MLBridge-grpc.so.
///
/// The library searches for the module's file in the following places, in this
/// order:
/// - The folder in the environment variable MLBRIDGE_MODULES.
/// - The folder of the library, plug-in or program that contains this library.
/// - If that folder is PREFIX/bin, the library folder of PREFIX (PREFIX/lib).
/// - The library folder of the prefix with which this library was configured.
/// - The folders that the dynamic linker searches.
///
/// For example, the module MLBridge-tvm.so contains this code:
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

/// The functions of a module. They have C++ objects as arguments, so the module
/// and its user must be built with the same version of this library and the
/// same standard library.
struct RunnerModule {
  /// The MLBRIDGE_VERSION of the module. This member is a C string and comes
  /// first, so that every version of the library can read it.
  const char *Version;
  /// Adds the schemes for runners. The library calls this function once for
  /// each factory that is not a copy of another factory.
  void (*AddRunners)(RunnerFactory &);
  /// Adds the schemes for trainers. Null if the module has no such schemes.
  void (*AddTraining)(EnvironmentServer &);
};

} // namespace MLBridge

/// Exports the module. Use this macro once in a library.
#define MLBRIDGE_RUNNER_MODULE(AddRunners, AddTraining)                        \
  extern "C" __attribute__((visibility("default")))                            \
  const MLBridge::RunnerModule MLBridgeRunnerModule = {                        \
      MLBRIDGE_VERSION, AddRunners, AddTraining};

#endif // MLCOMPILERBRIDGE_EXTEND_RUNNERMODULE_H
