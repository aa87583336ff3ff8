//===- Inliner.h - Lets a model decide what to inline -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// LLVM's inliner with a model instead of its heuristic.
/// \code
///   clang -Oz -fpass-plugin=MLBridgeLLVM.so
///         -mllvm -mlbridge-inliner=pipe:/tmp/advisor -c a.c
/// \endcode
///
/// **The request.** One for each call site whose inlining is legal and not
/// determined by an attribute. (LLVM's heuristic decides recursive calls; calls
/// in dead code are not inlined.) The features are those of LLVM's
/// MLInlineAdvisor (llvm/Analysis/InlineModelFeatureMaps.h): 38 tensors
/// int64_t[1]; with -ir2vec-vocab-path=FILE also `callee_embedding` and
/// `caller_embedding` (float[n]); with -mlbridge-inliner-include-default, last,
/// `inlining_default` (int64_t[1]), LLVM's own decision at this state.
///
/// **Phase ordering** (-mlbridge-phase-ordering). The actions of an episode
/// also inline according to this model, including actions that are only tried.
///
/// **The reply** is one integer, named `inlining_decision` in logs: 0, or else
/// inline. A model that defers leaves this decision to LLVM's heuristic. The
/// runner is told every decision, whether the model or the heuristic made it,
/// so `record:FILE|none` logs the heuristic's.
///
/// **Failures.** If the model fails and -mlbridge-on-error is `fallback`,
/// LLVM's heuristic decides this call and all others of the module.
///
/// **The limit.** As with all of LLVM's ML inliners, once a model has doubled
/// the size of the module's IR (-ml-advisor-size-increase-threshold=2.0), only
/// calls with an attribute are inlined, and no more requests are sent. If the
/// model deferred every time, so that the heuristic alone made the module grow,
/// the heuristic continues without requests and logs: the object code is the
/// stock compiler's.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_INLINER_INLINER_H
#define MLBRIDGE_LLVM_INLINER_INLINER_H

#include "llvm/IR/PassManager.h"

namespace llvm {
class PassBuilder;
} // namespace llvm

namespace MLBridge {

/// Registers the advisor with \p PB, if -mlbridge-inliner was given.
void registerInliner(llvm::PassBuilder &PB);

/// The same for \p Inner, which builds the passes that another pass runs on its
/// module \p M or on copies of it. The inliner then uses the model of \p M in
/// \p Outer, the analyses of that pass: one session, one log and one line of
/// statistics for each module. \p M and \p Outer must outlive what \p Inner
/// builds.
void registerInlinerInside(llvm::PassBuilder &Inner, llvm::Module &M,
                           llvm::ModuleAnalysisManager &Outer);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_INLINER_INLINER_H
