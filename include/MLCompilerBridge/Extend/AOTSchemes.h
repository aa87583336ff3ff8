//===- AOTSchemes.h - Compiled models as schemes ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The schemes `aot:` and `builtin:` for models compiled by `mlbridge compile`.
/// docs/guides/compile.md shows how to compile an .onnx file for either.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_EXTEND_AOTSCHEMES_H
#define MLCOMPILERBRIDGE_EXTEND_AOTSCHEMES_H

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/Runners/AOTModel.h"

#include <utility>
#include <vector>

namespace MLBridge {

/// The scheme `aot:FILE`.
RunnerFactory::Scheme aotScheme();
/// The scheme `builtin:NAME`, which looks NAME up among \p Models. What \p
/// Models points to must outlive the factory and its runners.
RunnerFactory::Scheme
builtinScheme(std::vector<const MLBridgeAOTModel *> Models);

/// Adds `aot:FILE`, which RunnerFactory() already has.
inline void addAOT(RunnerFactory &Factory) { Factory.add(aotScheme()); }

/// Adds `builtin:NAME`.
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
