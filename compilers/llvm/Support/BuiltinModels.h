//===- BuiltinModels.h - Models in the plug-in ------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The models that are built into this plug-in. While the plug-in is built,
/// `mlbridge compile` turns .onnx files of this repository into machine code.
/// The model spec `builtin:NAME` selects a built-in model and needs no file.
///
/// - `imitation`, for -mlbridge-inliner, decides like LLVM at -Oz. Its source
///   is models/inlining-imitation.
/// - `phase_ordering_oz`, for -mlbridge-phase-ordering, chooses the passes that
///   run instead of -Oz. Its source is models/phase-ordering-oz.
/// - `loop_distribution` and `loop_factors`, for the options of these names,
///   decide about innermost loops. Their source is models/loops.
/// - `regalloc_eviction`, for -mlbridge-eviction, and `regalloc_node`,
///   `regalloc_task`, `regalloc_colour` and `regalloc_split`, for
///   -mlbridge-regalloc, decide about registers. Their sources are
///   models/regalloc-eviction and models/regalloc-dialogue.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SUPPORT_BUILTINMODELS_H
#define MLBRIDGE_LLVM_SUPPORT_BUILTINMODELS_H

#include "MLCompilerBridge/Runners/AOTModel.h"

#include <vector>

namespace MLBridge {

/// Returns the built-in models. The list is empty if the plug-in was built
/// without the program `mlbridge`.
std::vector<const MLBridgeAOTModel *> builtinModels();

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SUPPORT_BUILTINMODELS_H
