//===- Inliner.h - What is inlined, decided by a model ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The inliner: LLVM's own, with a model in the place of its heuristic.
/// \code
///   clang -Oz -fpass-plugin=MLBridgeLLVM.so
///         -mllvm -mlbridge-inliner=pipe:/tmp/advisor -c a.c
/// \endcode
///
/// **The request.** One per call site whose inlining is legal and not decided
/// by an attribute. (Calls of a function to itself are left to LLVM's
/// heuristic, those in dead code to nobody.) The features are those of LLVM's
/// MLInlineAdvisor (llvm/Analysis/InlineModelFeatureMaps.h): 38 tensors
/// int64_t[1]; with -ir2vec-vocab-path=FILE also `callee_embedding` and
/// `caller_embedding` (float[n]); with -mlbridge-inliner-include-default, last,
/// `inlining_default` (int64_t[1]), LLVM's own decision at this state.
///
/// **Phase ordering** (-mlbridge-phase-ordering) beside it: the actions of an
/// episode inline what this model says, where they are tried as well.
///
/// **The answer** is one integer, called `inlining_decision` in logs: 0, or
/// else inline. A model that defers leaves this one decision to LLVM's
/// heuristic. The runner is told every decision, whoever made it, so
/// `record:FILE|none` logs the heuristic's.
///
/// **When the model fails**, and -mlbridge-on-error is `fallback`, LLVM's
/// heuristic decides this call and all others of the module.
///
/// **The limit.** As with all of LLVM's ML inliners, once a model has made the
/// module's IR grow to twice its size (-ml-advisor-size-increase-threshold=2.0)
/// nothing but what an attribute demands is inlined any more, and no request
/// is asked. If it was the heuristic alone that made the module grow, because
/// the model deferred each time, the heuristic goes on, unasked and unlogged:
/// the object code is the stock compiler's.
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

/// The same for \p Inner, which builds what a pass runs on its own module \p M
/// or on copies of it. The inliner asks the model that \p Outer, the analyses
/// around that pass, has for \p M: one session, one log, one line of statistics
/// a module. \p M and \p Outer outlive what \p Inner builds.
void registerInlinerInside(llvm::PassBuilder &Inner, llvm::Module &M,
                           llvm::ModuleAnalysisManager &Outer);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_INLINER_INLINER_H
