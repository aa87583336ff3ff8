//===- Options.h - The plug-in's command line -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Functions that return the values of the plug-in's options. `opt
/// -load-pass-plugin=X.so --help` lists the options.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SUPPORT_OPTIONS_H
#define MLBRIDGE_LLVM_SUPPORT_OPTIONS_H

#include "MLCompilerBridge/Extend/RunnerFactory.h"

#include "llvm/ADT/StringRef.h"

#include <string>

namespace llvm {
class Module;
namespace cl {
class OptionCategory;
} // namespace cl
} // namespace llvm

namespace MLBridge {

/// Returns the category of all options of the plug-in, including options that
/// are defined in subfolders.
llvm::cl::OptionCategory &optionCategory();

/// The effect of a model's failure on the compile.
enum class OnError {
  Fallback, ///< Print one remark for the module and use LLVM's heuristic.
  Fatal,    ///< The compile fails.
};

/// Returns the value of `-mlbridge-on-error=fallback|fatal`. The default is
/// fallback.
OnError onModelError();

/// True if `-mlbridge-print-statistics` was given. Each optimisation then
/// prints one line to stderr for each module.
bool printStatistics();

/// Returns the spec of the trainer. The spec is the value of
/// `-mlbridge-environment=SPEC` or, if the option was not given, of the
/// environment variable MLBRIDGE_SPEC. Returns InvalidArgument if neither is
/// set.
Expected<std::string> environmentSpec();

/// Returns the factory of this plug-in's runners. A runner waits 5 s for its
/// model unless the spec has the option `connect`. The library's default of 30
/// s would be too long here, because if the model is missing, every compile of
/// a build waits without a message. A model in this process is loaded at its
/// first request. All modules and threads share it.
RunnerFactory runnerFactory();

/// Replaces each `{module}` in \p Spec with a file name for \p M. The file name
/// consists of the last 100 characters of the module's name and a hash of the
/// module's path. Slashes and other special characters become `_`. Modules that
/// are compiled in parallel therefore write different logs.
std::string specForModule(llvm::StringRef Spec, const llvm::Module &M);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SUPPORT_OPTIONS_H
