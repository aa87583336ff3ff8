//===- PhaseOrderingPass.h - Lets a model choose the passes -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Phase ordering in a compiler: with -mlbridge-phase-ordering=SPEC, an episode
/// replaces the optimisation pipeline.
/// \code
///   clang -Oz -fpass-plugin=MLBridgeLLVM.so
///         -mllvm -mlbridge-phase-ordering=onnx:policy.onnx -c a.c
///   opt -load-pass-plugin=MLBridgeLLVM.so
///         -mlbridge-phase-ordering=onnx:policy.onnx
///         -passes=mlbridge-phase-ordering a.bc
/// \endcode
///
/// **Where.** At the start of the pipelines of -Os and -Oz, including LTO's
/// pre-link pipelines, and of ThinLTO's post-link pipeline for modules that
/// consist mostly of functions marked `optsize` or `minsize`. After an episode,
/// the following optional passes of LLVM are skipped. Required passes
/// (sanitizers, writers) and passes of other plug-ins still run. At other
/// levels nothing happens. If a profile is written or used, or functions are
/// instrumented (-finstrument-functions), LLVM's pipeline runs, with a remark.
/// As a separate pass, an episode runs at its position.
///
/// **Failures.** If the model fails (with -mlbridge-on-error=fallback) or
/// defers, or a search finds nothing better than LLVM's pipeline, that pipeline
/// runs unchanged: the object is the stock compiler's. Only a model that fails
/// after its first reply has already changed the module. As a separate pass, it
/// runs -Oz instead.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGPASS_H
#define MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGPASS_H

#include "PhaseOrdering/RegisterInside.h"

namespace MLBridge {

/// Registers the pass `mlbridge-phase-ordering` and, if
/// -mlbridge-phase-ordering was given, its positions in the pipelines. Episodes
/// run with the additions of \p Register.
void registerPhaseOrdering(llvm::PassBuilder &PB, RegisterInsideOf Register);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGPASS_H
