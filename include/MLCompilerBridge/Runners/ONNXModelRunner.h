//===- ONNXModelRunner.h - ONNX models in this process ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Evaluates ONNX models with ONNX Runtime in this process. The spec is
/// `onnx:policy.onnx`, or
/// `onnx:node=node.onnx,colour=colour.onnx` with one model for each agent of an
/// environment.
/// \code
///   ONNXModelRunner Runner("policy.onnx");
///   Runner.populateFeatures(std::pair{"callee_size", 12});
///   bool ShouldInline = Runner.evaluate<bool>();
///
///   ONNXModelRunner Players({{"node", "node.onnx"}, {"colour", "c.onnx"}});
///   Expected<double> Return = runEpisode(Env, Players);
/// \endcode
/// This component does not link ONNX Runtime. Instead, the first request loads
/// the library of ONNX Runtime. docs/guides/in-process.md lists the folders
/// that are searched for the library.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_ONNXMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_ONNXMODELRUNNER_H

#include "MLCompilerBridge/Extend/ModelFormat.h"

#include <map>
#include <string>
#include <vector>

namespace MLBridge {

struct ONNXOptions {
  /// The library of ONNX Runtime, 1.15 or later: a path, or a name for the
  /// dynamic linker. If empty, the environment variable MLBRIDGE_ONNXRUNTIME
  /// gives the library. If this variable is not set, libonnxruntime.so.1 is
  /// searched for in these places:
  /// - The folder of the program or plug-in that contains this code.
  /// - The installation's library folder.
  /// - The folders that the dynamic linker searches.
  std::string Runtime;
  /// The execution providers for the model's operators, in order of preference,
  /// such as {"cuda", "cpu"}. The names are ONNX Runtime's, in upper or lower
  /// case and with or without "ExecutionProvider". The CPU executes each
  /// operator that no earlier provider supports. If the list is empty, the CPU
  /// executes all operators.
  std::vector<std::string> Providers;
  /// The paths of libraries with custom operators. Each library exports the
  /// function RegisterCustomOps(), which onnxruntime_c_api.h describes.
  std::vector<std::string> OperatorLibraries;
};

/// Loads the model in \p File. Any number of threads and runners can share the
/// model, so an InProcessModelRunner::Load may return it several times.
///
/// The model is evaluated in the calling thread, and the evaluation starts no
/// threads. Outputs of types that advice cannot hold (maps, sequences, float16)
/// are omitted.
///
/// Returns one of these errors:
/// - Unsupported if ONNX Runtime was not found or lacks an execution provider,
///   or an input has no fixed rank, or an input has a type that features cannot
///   have.
/// - System if the file or a library of operators does not exist.
/// - Malformed if the file is not an ONNX model, or its external data are
///   outside its folder.
/// - Model, with the reason, if ONNX Runtime cannot run the model.
Expected<std::shared_ptr<const Model>>
loadONNXModel(const std::string &File, const ONNXOptions &Options = {});

/// Evaluates one ONNX model, or several models with labels.
/// InProcessModelRunner documents which features a model receives and how its
/// outputs become advice. A model is loaded at its first request. A runner that
/// is constructed directly does not share its models, whereas runners that come
/// from one RunnerFactory or its copies share them.
class ONNXModelRunner final : public InProcessModelRunner {
public:
  explicit ONNXModelRunner(const std::string &File,
                           const DecisionOptions &Decisions = {},
                           const ONNXOptions &Options = {});
  /// Creates a runner for several models. \p Files maps labels to files, one
  /// for each agent of an environment. See runEpisode().
  explicit ONNXModelRunner(const std::map<std::string, std::string> &Files,
                           const DecisionOptions &Decisions = {},
                           const ONNXOptions &Options = {});
};

/// Adds the scheme `onnx`. The options `runtime`, `provider` and `ops` of a
/// spec set the members of ONNXOptions. \p Options are the defaults.
void addONNX(RunnerFactory &Factory, const ONNXOptions &Options = {});

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_ONNXMODELRUNNER_H
