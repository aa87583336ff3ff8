//===- BuiltinModels.h - The models in the plug-in --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The models that are a part of this plug-in: machine code that `mlbridge
/// compile` made of an .onnx file of this repository while the plug-in was
/// built. `builtin:NAME` asks one, and needs no file.
///
/// - `imitation`, for -mlbridge-inliner: decides as LLVM does at -Oz; from
///   models/inlining-imitation
/// - `phase_ordering_oz`, for -mlbridge-phase-ordering: which passes run in the
///   place of -Oz; from models/phase-ordering-oz.onnx, once that is there
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_BUILTINMODELS_H
#define MLBRIDGE_LLVM_BUILTINMODELS_H

#include "MLCompilerBridge/Runners/AOTModel.h"

#include <vector>

namespace MLBridge {

/// All of them; none where the plug-in was built without `mlbridge`.
std::vector<const MLBridgeAOTModel *> builtinModels();

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_BUILTINMODELS_H
