//===- TFModelRunner.h - TensorFlow models in this process ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// TensorFlow SavedModels, evaluated through TensorFlow's C API in this process
/// (paper, section 3.1.2): `tf:saved_model/`, for a model that is still being
/// trained. A finished model is smaller and faster as machine code:
/// mlbridge_add_tf_aot_model() in CMake.
/// \code
///   TFModelRunner Runner("saved_model");
///   Runner.populateFeatures(std::pair{"callee_size", TensorRef(Size, {1})});
///   bool ShouldInline = Runner.evaluate<bool>();
/// \endcode
/// Nothing here links TensorFlow; its library is loaded at the first request.
/// docs/guides/tensorflow.md lists where it is searched for.
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
  /// Python package, or libtensorflow.so.2. A path, or a name for the dynamic
  /// linker. If empty: the environment variable MLBRIDGE_TENSORFLOW, or else
  /// either library wherever the dynamic linker finds it.
  std::string Runtime;
  /// The model's signature to evaluate.
  std::string Signature = "serving_default";
};

/// Loads the SavedModel in \p Folder. Any number of threads and runners can
/// share it: an InProcessModelRunner::Load may return it to each. Inputs and
/// outputs are those of the signature, by their names.
///
/// The model evaluates in the calling thread. TensorFlow allocates the outputs
/// of each evaluation.
///
/// Errors: Unsupported: TensorFlow was not found, or an input has a type that
/// features cannot have. System: the folder does not exist. Malformed: the
/// folder does not contain a SavedModel. InvalidArgument: the model lacks the
/// signature. Model: TensorFlow cannot load the model; the message says why.
Expected<std::shared_ptr<const Model>>
loadTFModel(const std::string &Folder, const TFOptions &Options = {});

/// Evaluates one SavedModel, or several by label. InProcessModelRunner
/// documents which features a model gets and how its outputs become advice.
/// Each model is loaded at its first request, for this runner alone. Runners
/// made by one RunnerFactory and its copies share the model and reload it after
/// a file in its folder has changed.
class TFModelRunner final : public InProcessModelRunner {
public:
  explicit TFModelRunner(const std::string &Folder,
                         const DecisionOptions &Decisions = {},
                         const TFOptions &Options = {});
  /// Folders by label, one for each agent of an environment: see runEpisode().
  explicit TFModelRunner(const std::map<std::string, std::string> &Folders,
                         const DecisionOptions &Decisions = {},
                         const TFOptions &Options = {});
};

/// Adds the scheme `tf`, with the options `runtime` and `signature` for the
/// members of TFOptions. \p Options are the defaults.
void addTF(RunnerFactory &Factory, const TFOptions &Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_TFMODELRUNNER_H
