//===- TFModelRunner.h - TensorFlow models in this process ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Evaluates TensorFlow SavedModels with TensorFlow's C API in this process.
/// The spec is `tf:saved_model/`. Use this runner while the model is still
/// being trained. When the model is finished, compile it to machine code with
/// mlbridge_add_tf_aot_model() in CMake. The compiled model is smaller and
/// faster.
/// \code
///   TFModelRunner Runner("saved_model");
///   Runner.populateFeatures(std::pair{"callee_size", TensorRef(Size, {1})});
///   bool ShouldInline = Runner.evaluate<bool>();
/// \endcode
/// This component does not link TensorFlow. Instead, the first request loads
/// TensorFlow's library. docs/guides/tensorflow.md lists the folders that are
/// searched for the library.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_TFMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_TFMODELRUNNER_H

#include "MLCompilerBridge/Extend/ModelFormat.h"

#include <map>
#include <string>

namespace MLBridge {

struct TFOptions {
  /// TensorFlow's library, 2.x, with the C API: libtensorflow_cc.so.2 of the
  /// Python package, or libtensorflow.so.2. The value is a path or a name for
  /// the dynamic linker. If empty, the environment variable MLBRIDGE_TENSORFLOW
  /// gives the library. If this variable is not set, the dynamic linker
  /// searches for both names.
  std::string Runtime;
  /// The name of the signature to evaluate.
  std::string Signature = "serving_default";
};

/// Loads the SavedModel in \p Folder. Any number of threads and runners can
/// share the model, so an InProcessModelRunner::Load may return it several
/// times. Inputs and outputs have the names in the signature.
///
/// The model is evaluated in the calling thread. In each evaluation, TensorFlow
/// allocates memory for the outputs.
///
/// Returns one of these errors:
/// - Unsupported if TensorFlow was not found, or an input has a type that
///   features cannot have.
/// - System if the folder does not exist.
/// - Malformed if the folder does not contain a SavedModel.
/// - InvalidArgument if the model lacks the signature.
/// - Model, with the reason, if TensorFlow cannot load the model.
Expected<std::shared_ptr<const Model>>
loadTFModel(const std::string &Folder, const TFOptions &Options = {});

/// Evaluates one SavedModel, or several models with labels.
/// InProcessModelRunner documents which features a model receives and how its
/// outputs become advice. A model is loaded at its first request. A runner that
/// is constructed directly does not share its models. Runners that come from
/// one RunnerFactory or its copies share a model. After a file in a model's
/// folder has changed, only runners that have not made a request yet load the
/// new model.
class TFModelRunner final : public InProcessModelRunner {
public:
  explicit TFModelRunner(const std::string &Folder,
                         const DecisionOptions &Decisions = {},
                         const TFOptions &Options = {});
  /// Creates a runner for several models. \p Folders maps labels to folders,
  /// one for each agent of an environment. See runEpisode().
  explicit TFModelRunner(const std::map<std::string, std::string> &Folders,
                         const DecisionOptions &Decisions = {},
                         const TFOptions &Options = {});
};

/// Adds the scheme `tf`. The options `runtime` and `signature` of a spec set
/// the members of TFOptions. \p Options are the defaults.
void addTF(RunnerFactory &Factory, const TFOptions &Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_TFMODELRUNNER_H
