//===- DecisionReplay.h - Replays a file of decisions -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Inlines, or does not inline, the calls that a file of decisions lists:
/// `-mlbridge-inliner=decisions:FILE`. LLVM's heuristic decides about all other
/// calls.
///
/// LLVM's own replay, -cgscc-inline-replay, inlines whatever the file says,
/// even a weak function that the linker may replace. This replay checks that
/// inlining is legal, and reports what it could not apply.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_INLINER_DECISIONREPLAY_H
#define MLBRIDGE_LLVM_INLINER_DECISIONREPLAY_H

#include "Inliner/InlineAdvisorSource.h"

#include "llvm/ADT/StringRef.h"

namespace MLBridge {

/// Returns the path of a spec `decisions:FILE`, or an empty string for any
/// other spec.
llvm::StringRef decisionFileOf(llvm::StringRef Spec);

/// Reads the decisions at \p Path for the module \p M. Emits an error and
/// returns null if the file cannot be read or parsed.
///
/// When the object is destroyed, it prints a remark in two cases: inlining
/// would be illegal, or no call site has a location. With
/// -mlbridge-print-statistics, it also prints how many decisions were applied.
std::unique_ptr<InlineAdvisorSource> openDecisions(llvm::StringRef Path,
                                                   llvm::Module &M);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_INLINER_DECISIONREPLAY_H
