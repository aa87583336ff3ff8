//===- ONNXModelRunner.h - ONNX models in this process ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ONNX models by ONNX Runtime: `onnx:policy.onnx`, or one for each agent of an
/// environment, `onnx:node=node.onnx,colour=colour.onnx` (paper, section 3.4).
/// \code
///   ONNXModelRunner Runner("policy.onnx");
///   Runner.populateFeatures(std::pair{"callee_size", 12});
///   bool ShouldInline = Runner.evaluate<bool>();
///
///   ONNXModelRunner Players({{"node", "node.onnx"}, {"colour", "c.onnx"}});
///   Expected<double> Return = runEpisode(Env, Players);
/// \endcode
/// Nothing here links ONNX Runtime: its library is looked for when a model is
/// first asked. docs/in-process.md says where.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_ONNXMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_ONNXMODELRUNNER_H

#include "MLCompilerBridge/Extend/ModelFormat.h"

#include <map>
#include <string>

namespace MLBridge {

struct ONNXOptions {
  /// The library of ONNX Runtime, 1.15 or later: a path, or a name that the
  /// loader finds. Where it is empty: what the environment's
  /// MLBRIDGE_ONNXRUNTIME says, then libonnxruntime.so.1 in the folder of the
  /// program or plug-in that this code is in, then wherever the loader has it.
  std::string Runtime;
};

/// Loads the model in \p File, for as many threads and runners as there are:
/// an InProcessModelRunner::Load may give it to each of them.
///
/// It evaluates in the thread that asks, without threads of its own. An output
/// of a type that no advice has (a map, a sequence, float16) is left out.
///
/// Unsupported: there is no ONNX Runtime, or the model has inputs of a type
/// that no feature has, or of any rank. System: there is no such file.
/// Malformed: it is no model. Model: ONNX Runtime cannot run it, and says why.
Expected<std::shared_ptr<const Model>>
loadONNXModel(const std::string &File, const ONNXOptions &Options = {});

/// Asks one ONNX model, or several by label; see InProcessModelRunner for which
/// features a model gets and what is made of its outputs. Each file is loaded
/// at the first request that is for it, by this runner alone; runners that one
/// RunnerFactory and its copies make share it.
class ONNXModelRunner final : public InProcessModelRunner {
public:
  explicit ONNXModelRunner(const std::string &File,
                           const DecisionOptions &Decisions = {},
                           const ONNXOptions &Options = {});
  /// The files by label: for the agents of an environment, see runEpisode().
  explicit ONNXModelRunner(const std::map<std::string, std::string> &Files,
                           const DecisionOptions &Decisions = {},
                           const ONNXOptions &Options = {});
};

/// Adds the scheme `onnx`, with the option `runtime` for ONNXOptions::Runtime;
/// where a spec has none, \p Options say.
void addONNX(RunnerFactory &Factory, const ONNXOptions &Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_ONNXMODELRUNNER_H
