//===- BuiltinModels.h - Models in the plug-in ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The models in this plug-in: machine code that `mlbridge compile` makes from
/// .onnx files of this repository while the plug-in is built. `builtin:NAME`
/// selects one and needs no file.
///
/// - `imitation`, for -mlbridge-inliner: decides like LLVM at -Oz; from
///   models/inlining-imitation
/// - `phase_ordering_oz`, for -mlbridge-phase-ordering: chooses the passes that
///   run instead of -Oz; from models/phase-ordering-oz.onnx, if that file
///   exists
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_BUILTINMODELS_H
#define MLBRIDGE_LLVM_BUILTINMODELS_H

#include "MLCompilerBridge/Runners/AOTModel.h"

#include <vector>

namespace MLBridge {

/// The built-in models; empty if the plug-in was built without `mlbridge`.
std::vector<const MLBridgeAOTModel *> builtinModels();

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_BUILTINMODELS_H
