//===- ModelFormat.h - Model files as schemes -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelFormat: all that a runtime says of its model files, so that specs can
/// name them. InProcessModelRunner does the rest.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_EXTEND_MODELFORMAT_H
#define MLCOMPILERBRIDGE_EXTEND_MODELFORMAT_H

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/Runners/InProcessModelRunner.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace MLBridge {

/// A kind of model file, as a scheme: `NAME:FILE?options` and
/// `NAME:label=FILE,label=FILE?options`.
struct ModelFormat {
  std::string Scheme;
  /// One line for --help and `mlbridge doctor`.
  std::string Help;
  /// Loads the file. \p Spec has the options.
  std::function<Expected<std::shared_ptr<const Model>>(const std::string &File,
                                                       const ModelSpec &Spec)>
      Load;
  /// The options that it has besides DecisionOptions'.
  // Initialized, so that compilers do not warn where it is left out.
  // NOLINTNEXTLINE(readability-redundant-member-init)
  std::vector<std::string_view> Options = {};
  /// What is wrong with those, if anything; called before Load.
  RunnerFactory::Inspect Check = nullptr;
  /// Whether FILE is one. Else it is some other name, and Load is called by
  /// each runner.
  bool IsFile = true;
  /// The other files that FILE names, such as those of its weights: when one of
  /// them has changed, so has the model.
  std::function<std::vector<std::string>(const std::string &File)> Parts =
      nullptr;
  /// Whether FILE may be a folder, such as a SavedModel; then the model changes
  /// with any file in it. Else a folder is refused.
  bool MayBeFolder = false;
};

/// The scheme of such files. A file is loaded once, whatever number of runners
/// the factory that has the scheme and its copies make in whatever threads, and
/// again for the runners that ask first after it has changed. It stays loaded
/// as long as one of these factories or their runners is there.
///
/// A label is anything without `/`, `,` and `=`; so `./a=b.onnx` is a file.
RunnerFactory::Scheme modelScheme(ModelFormat Format);

/// Adds it to \p Factory.
inline void addModelFormat(RunnerFactory &Factory, ModelFormat Format) {
  Factory.add(modelScheme(std::move(Format)));
}

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_MODELFORMAT_H
