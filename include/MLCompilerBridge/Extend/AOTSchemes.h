//===- AOTSchemes.h - Compiled models as schemes ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the schemes `aot:` and `builtin:` for compiled models. `mlbridge
/// compile` compiles an .onnx file for either scheme (docs/guides/compile.md).
/// The CMake function mlbridge_add_tf_aot_model() compiles a SavedModel for
/// `builtin:` (docs/guides/tensorflow.md).
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_EXTEND_AOTSCHEMES_H
#define MLCOMPILERBRIDGE_EXTEND_AOTSCHEMES_H

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/Runners/AOTModel.h"

#include <utility>
#include <vector>

namespace MLBridge {

/// Returns the scheme `aot:FILE`.
RunnerFactory::Scheme aotScheme();
/// Returns the scheme `builtin:NAME`, which finds the model called NAME in
/// \p Models. The models must outlive the factory and its runners.
RunnerFactory::Scheme
builtinScheme(std::vector<const MLBridgeAOTModel *> Models);

/// Adds the scheme `builtin:NAME` for \p Models.
/// \code
///   extern const MLBridgeAOTModel mlbridge_aot_model_policy;
///   addBuiltinModels(Factory, {&mlbridge_aot_model_policy});
/// \endcode
inline void addBuiltinModels(RunnerFactory &Factory,
                             std::vector<const MLBridgeAOTModel *> Models) {
  Factory.add(builtinScheme(std::move(Models)));
}

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_AOTSCHEMES_H
