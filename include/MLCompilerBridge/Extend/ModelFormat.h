//===- ModelFormat.h - Model files as schemes -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelFormat: how a runtime loads its model files, so that specs can name
/// them. InProcessModelRunner does the rest.
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
  /// Loads the file. \p Spec contains the options.
  std::function<Expected<std::shared_ptr<const Model>>(const std::string &File,
                                                       const ModelSpec &Spec)>
      Load;
  /// The options besides those of DecisionOptions.
  // Initialized, so that compilers do not warn if it is omitted.
  // NOLINTNEXTLINE(readability-redundant-member-init)
  std::vector<std::string_view> Options = {};
  /// Checks these options; called before Load.
  RunnerFactory::Inspect Check = nullptr;
  /// True if FILE is a file. Otherwise it is some other name, and each runner
  /// calls Load.
  bool IsFile = true;
  /// The other files that FILE names, such as weights. A change in one of them
  /// changes the model.
  std::function<std::vector<std::string>(const std::string &File)> Parts =
      nullptr;
  /// True if FILE may be a folder, such as a SavedModel. The model then changes
  /// with any file in it. Otherwise folders are refused.
  bool MayBeFolder = false;
};

/// Makes a scheme for such files. The factory with the scheme and its copies
/// load a file once for all their runners in all threads, and once more after
/// it has changed, for runners whose first request comes later. The model stays
/// loaded while one of these factories or runners exists.
///
/// A label cannot contain `/`, `,` or `=`, so `./a=b.onnx` is a file.
RunnerFactory::Scheme modelScheme(ModelFormat Format);

/// Adds the scheme of \p Format to \p Factory.
inline void addModelFormat(RunnerFactory &Factory, ModelFormat Format) {
  Factory.add(modelScheme(std::move(Format)));
}

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_MODELFORMAT_H
