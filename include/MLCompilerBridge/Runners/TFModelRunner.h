//===- TFModelRunner.h - TensorFlow models in this process ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// TensorFlow's SavedModels by its C API: `tf:saved_model/`, for a model that
/// is still being trained (paper, section 3.4). One that is not is smaller and
/// faster as machine code: mlbridge_add_tf_aot_model() in CMake.
/// \code
///   TFModelRunner Runner("saved_model");
///   Runner.populateFeatures(std::pair{"callee_size", TensorRef(Size, {1})});
///   bool ShouldInline = Runner.evaluate<bool>();
/// \endcode
/// Nothing here links TensorFlow: its library is looked for when a model is
/// first asked. docs/tensorflow.md says where.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_TFMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_TFMODELRUNNER_H

#include "MLCompilerBridge/Extend/ModelFormat.h"

#include <map>
#include <string>

namespace MLBridge {

struct TFOptions {
  /// TensorFlow's library, 2.x, that has the C API: libtensorflow_cc.so.2 of
  /// the Python package, or libtensorflow.so.2. A path, or a name that the
  /// loader finds. Where it is empty: what the environment's
  /// MLBRIDGE_TENSORFLOW says, then either of these wherever the loader has it.
  std::string Runtime;
  /// Which of the model's signatures is asked.
  std::string Signature = "serving_default";
};

/// Loads the SavedModel in \p Folder, for as many threads and runners as there
/// are: an InProcessModelRunner::Load may give it to each of them. Its inputs
/// and outputs are those of the signature, by their names.
///
/// It evaluates in the thread that asks. TensorFlow allocates the outputs of
/// each evaluation.
///
/// Unsupported: there is no TensorFlow, or the signature has inputs of a type
/// that no feature has. System: there is no such folder. Malformed: it holds no
/// SavedModel. InvalidArgument: it has no such signature. Model: TensorFlow
/// cannot load it, and says why.
Expected<std::shared_ptr<const Model>>
loadTFModel(const std::string &Folder, const TFOptions &Options = {});

/// Asks one SavedModel, or several by label; see InProcessModelRunner for which
/// features a model gets and what is made of its outputs. Each is loaded at the
/// first request that is for it, by this runner alone; runners that one
/// RunnerFactory and its copies make share it, and load it again when a file in
/// its folder has changed.
class TFModelRunner final : public InProcessModelRunner {
public:
  explicit TFModelRunner(const std::string &Folder,
                         const DecisionOptions &Decisions = {},
                         const TFOptions &Options = {});
  /// The folders by label: for the agents of an environment, see runEpisode().
  explicit TFModelRunner(const std::map<std::string, std::string> &Folders,
                         const DecisionOptions &Decisions = {},
                         const TFOptions &Options = {});
};

/// Adds the scheme `tf`, with the options `runtime` and `signature` for those
/// of TFOptions; where a spec has none, \p Options say.
void addTF(RunnerFactory &Factory, const TFOptions &Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_TFMODELRUNNER_H
