//===- Inliner.h - Lets a model decide what to inline -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Makes a model decide in LLVM's inliner, instead of LLVM's heuristic.
/// \code
///   clang -Oz -fpass-plugin=MLBridgeLLVM.so
///         -mllvm -mlbridge-inliner=pipe:/tmp/advisor -c a.c
/// \endcode
///
/// **The request.** The model receives one request for each call site whose
/// inlining is legal and not determined by an attribute. There are two
/// exceptions: LLVM's heuristic decides about recursive calls, and calls in
/// dead code are not inlined. A request has these features:
///
/// - the 38 features of LLVM's MLInlineAdvisor, each int64_t[1]
///   (llvm/Analysis/InlineModelFeatureMaps.h)
/// - with -ir2vec-vocab-path=FILE: `callee_embedding` and `caller_embedding`,
///   each float[n]
/// - with -mlbridge-inliner-include-linkage: the features of CallFeatures.h,
///   each int64_t[1]
/// - with -mlbridge-inliner-include-default, as the last feature:
///   `inlining_default`, int64_t[1], which is LLVM's own decision for this call
///   site
///
/// **Phase ordering.** With -mlbridge-phase-ordering, the passes of an episode
/// also inline according to this model. This includes actions whose result is
/// discarded.
///
/// **The reply.** The model replies with one integer. 0 means that the call is
/// not inlined. Any other integer means that it is inlined. If the model
/// defers, LLVM's heuristic decides about this call, unless the spec ends with
/// `|decisions:FILE` and the file decides. Logs contain each decision under the
/// name `inlining_decision`, including decisions after a deferral.
/// `record:FILE|none` therefore logs the decisions of LLVM's heuristic, and
/// `record:FILE|decisions:FILE` logs replayed decisions. With
/// -mlbridge-inliner-name-calls, the context of each request ends with the
/// call's decisionKey().
///
/// **Failures.** If the model fails and -mlbridge-on-error is `fallback`,
/// LLVM's heuristic decides about this call and all following calls of the
/// module.
///
/// **The limit.** All of LLVM's ML inliners have a size limit, by default twice
/// the original size of the module's IR
/// (-ml-advisor-size-increase-threshold=2.0). When the limit is reached, no
/// more requests are sent, and only calls with an attribute are inlined. The
/// limit has no effect if the model has always deferred. In that case, LLVM's
/// heuristic continues, but its further decisions are not logged. The object
/// code then equals the stock compiler's.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_INLINER_INLINER_H
#define MLBRIDGE_LLVM_INLINER_INLINER_H

#include "Inliner/CallFeatures.h"

#include "llvm/IR/PassManager.h"

#include <memory>
#include <optional>

namespace llvm {
class CallBase;
class PassBuilder;
} // namespace llvm

namespace MLBridge {

class FeatureSet;
class InlineAdvisorSource;

/// If -mlbridge-inliner was given, registers the inline advisor with \p PB.
void registerInliner(llvm::PassBuilder &PB);

/// If -mlbridge-inliner was given, prepares \p PB so that passes that run other
/// passes can call registerInlinerInside(). In the pipelines of \p PB
/// themselves, LLVM's heuristic decides.
void registerInlinerOnlyInside(llvm::PassBuilder &PB);

/// Registers the inline advisor for the case that a pass runs other passes. \p
/// Inner builds these other passes. They run on the outer pass's module \p M or
/// on copies of \p M. \p Outer has the outer pass's analyses. Through \p Outer,
/// the inner inliner shares the session of \p M, so that each module has one
/// session, one log and one line of statistics. \p M and \p Outer must outlive
/// the passes that \p Inner builds.
void registerInlinerInside(llvm::PassBuilder &Inner, llvm::Module &M,
                           llvm::ModuleAnalysisManager &Outer);

/// Decides about calls in place of a model. It receives the same features.
class CallDecider {
public:
  virtual ~CallDecider() = default;

  /// Called before each run of the inliner. \p Features has the names, types
  /// and shapes of the features of all requests.
  virtual void beginRun(const FeatureSet &Features) = 0;
  /// True if \p Call must not be inlined. decide() is not called for it.
  virtual bool excludes(const llvm::CallBase &Call) const = 0;
  /// Returns whether to inline \p Call, or nothing if LLVM decides. \p Default
  /// is LLVM's own decision.
  virtual std::optional<bool> decide(const llvm::CallBase &Call,
                                     const FeatureSet &Features,
                                     bool Default) = 0;
};

/// Returns a source for one module. Its advisors let \p Decider decide about
/// each call for which they would otherwise send a request to a model. \p Files
/// is for the feature `callee_files`. \p Decider must outlive the source.
std::shared_ptr<InlineAdvisorSource> sourceOf(CallDecider &Decider,
                                              CalleeFiles Files);

/// Registers \p Source, which decides about inlining in all modules of the
/// pipelines that \p Inner builds.
void registerAdvisorSource(llvm::PassBuilder &Inner,
                           std::shared_ptr<InlineAdvisorSource> Source);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_INLINER_INLINER_H
