//===- ONNXModelRunner.h - ONNX models in this process ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ONNX models, evaluated by ONNX Runtime in this process (paper, section
/// 3.1.2): `onnx:policy.onnx`, or one model for each agent of an environment,
/// `onnx:node=node.onnx,colour=colour.onnx`.
/// \code
///   ONNXModelRunner Runner("policy.onnx");
///   Runner.populateFeatures(std::pair{"callee_size", 12});
///   bool ShouldInline = Runner.evaluate<bool>();
///
///   ONNXModelRunner Players({{"node", "node.onnx"}, {"colour", "c.onnx"}});
///   Expected<double> Return = runEpisode(Env, Players);
/// \endcode
/// Nothing here links ONNX Runtime; its library is loaded at the first request.
/// docs/guides/in-process.md lists where it is searched for.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_ONNXMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_ONNXMODELRUNNER_H

#include "MLCompilerBridge/Extend/ModelFormat.h"

#include <map>
#include <string>

namespace MLBridge {

struct ONNXOptions {
  /// The library of ONNX Runtime, 1.15 or later: a path, or a name for the
  /// dynamic linker. If empty: the environment variable MLBRIDGE_ONNXRUNTIME,
  /// or else libonnxruntime.so.1 in the folder of the program or plug-in that
  /// contains this code, in the installation's library folder, or wherever the
  /// dynamic linker finds it.
  std::string Runtime;
};

/// Loads the model in \p File. Any number of threads and runners can share it:
/// an InProcessModelRunner::Load may return it to each.
///
/// The model evaluates in the calling thread and starts no threads. Outputs of
/// types that advice cannot hold (maps, sequences, float16) are omitted.
///
/// Errors: Unsupported: ONNX Runtime was not found, or an input has any rank or
/// a type that features cannot have. System: the file does not exist.
/// Malformed: the file is not an ONNX model. Model: ONNX Runtime cannot run the
/// model; the message says why.
Expected<std::shared_ptr<const Model>>
loadONNXModel(const std::string &File, const ONNXOptions &Options = {});

/// Evaluates one ONNX model, or several by label. InProcessModelRunner
/// documents which features a model gets and how its outputs become advice.
/// Each file is loaded at its first request, for this runner alone; runners
/// made by one RunnerFactory and its copies share the model.
class ONNXModelRunner final : public InProcessModelRunner {
public:
  explicit ONNXModelRunner(const std::string &File,
                           const DecisionOptions &Decisions = {},
                           const ONNXOptions &Options = {});
  /// Files by label, one for each agent of an environment: see runEpisode().
  explicit ONNXModelRunner(const std::map<std::string, std::string> &Files,
                           const DecisionOptions &Decisions = {},
                           const ONNXOptions &Options = {});
};

/// Adds the scheme `onnx`, with the option `runtime` for ONNXOptions::Runtime.
/// \p Options are the defaults.
void addONNX(RunnerFactory &Factory, const ONNXOptions &Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_ONNXMODELRUNNER_H
