//===- PhaseOrderingPass.h - Lets a model choose the passes -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Phase ordering in a compiler. With -mlbridge-phase-ordering=SPEC, an episode
/// replaces the optimisation pipeline. In an episode, the model chooses one
/// action after another, and each action runs a few passes.
/// \code
///   clang -Oz -fpass-plugin=MLBridgeLLVM.so
///         -mllvm -mlbridge-phase-ordering=onnx:policy.onnx -c a.c
///   opt -load-pass-plugin=MLBridgeLLVM.so
///         -mlbridge-phase-ordering=onnx:policy.onnx
///         -passes=mlbridge-phase-ordering a.bc
/// \endcode
///
/// **Where an episode runs.** An episode runs at the start of these pipelines:
///
/// - the pipelines of -Os and -Oz, including LTO's pre-link pipelines
/// - ThinLTO's post-link pipeline, if the module consists mostly of functions
///   marked `optsize` or `minsize`
///
/// After the episode, the optional LLVM passes in the pipeline are skipped.
/// Required passes (sanitizers, writers) and passes of other plug-ins still
/// run. LLVM's own pipeline runs instead, with a remark, if a profile is
/// written or used, or if functions are instrumented (-finstrument-functions).
/// The pass `mlbridge-phase-ordering` runs an episode at the pass's own
/// position.
///
/// **Failures.** LLVM's pipeline runs unchanged in these cases, so that the
/// object file equals the stock compiler's:
///
/// - The model fails, and -mlbridge-on-error is `fallback`.
/// - The model defers.
/// - A search finds nothing better than LLVM's pipeline.
///
/// There is one exception: if the model fails or defers after its first reply,
/// earlier actions have already changed the module. In the three listed cases,
/// the pass `mlbridge-phase-ordering` runs the pipeline of -Oz instead.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGPASS_H
#define MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGPASS_H

#include "Pipeline/RegisterInside.h"
#include "Pipeline/StockPipeline.h"

#include "llvm/ADT/StringRef.h"

namespace MLBridge {

/// Registers the pass `mlbridge-phase-ordering`. \p Register adds other
/// optimisations to the passes of an episode.
void registerPhaseOrderingPass(llvm::PassBuilder &PB,
                               RegisterInsideOf Register);

/// If -mlbridge-phase-ordering was given, adds episodes to LLVM's pipelines.
void registerPhaseOrdering(llvm::PassBuilder &PB, RegisterInsideOf Register);

/// Runs an episode on \p M with the model of -mlbridge-phase-ordering. If \p
/// WhyNot is not empty, it is a reason to keep LLVM's pipeline, and no episode
/// runs. Returns true if the episode has replaced \p Stock. Reports failures
/// itself.
bool runEpisode(llvm::Module &M, const StockPipeline &Stock,
                llvm::StringRef WhyNot, const RegisterInside &Register);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGPASS_H
