//===- ModelFormat.h - Model files as schemes -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines ModelFormat, which makes a runtime's model files available in specs.
/// A ModelFormat describes how to load a file. InProcessModelRunner evaluates
/// the loaded model.
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

/// A kind of model file and its scheme. Specs have the form
/// `SCHEME:FILE?options`, or `SCHEME:label=FILE,label=FILE?options` for several
/// models.
struct ModelFormat {
  std::string Scheme;
  /// The line that describes the scheme in --help and in `mlbridge doctor`.
  std::string Help;
  /// Loads the model \p File. \p Spec contains the options.
  std::function<Expected<std::shared_ptr<const Model>>(const std::string &File,
                                                       const ModelSpec &Spec)>
      Load;
  /// The names of the format's own options. Specs also accept the options of
  /// DecisionOptions.
  // The initializer avoids a compiler warning when users omit this member.
  // NOLINTNEXTLINE(readability-redundant-member-init)
  std::vector<std::string_view> Options = {};
  /// Checks the values of the format's own options. The library calls this
  /// function before Load.
  RunnerFactory::Inspect Check = nullptr;
  /// True if FILE is the path of a file. If false, FILE is another kind of
  /// name, and each runner calls Load instead of sharing the model.
  bool IsFile = true;
  /// Returns the other files that \p File refers to, such as files with
  /// weights. The model is reloaded if one of these files changes.
  std::function<std::vector<std::string>(const std::string &File)> Parts =
      nullptr;
  /// True if FILE may be a folder, such as a SavedModel. The model is reloaded
  /// if any file in the folder changes. If false, folders are refused.
  bool MayBeFolder = false;
};

/// Creates a scheme for files of this format. A factory with the scheme loads a
/// file once. All runners of the factory and its copies, in all threads, share
/// the model. If the file changes, the factory loads the new file once, for
/// runners whose first request follows the change. The model stays loaded while
/// one of these factories or runners exists.
///
/// A label cannot contain `/`, `,` or `=`. Therefore, `./a=b.onnx` means a
/// file, not the label `./a`.
RunnerFactory::Scheme modelScheme(ModelFormat Format);

/// Adds the scheme of \p Format to \p Factory.
inline void addModelFormat(RunnerFactory &Factory, ModelFormat Format) {
  Factory.add(modelScheme(std::move(Format)));
}

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_MODELFORMAT_H
