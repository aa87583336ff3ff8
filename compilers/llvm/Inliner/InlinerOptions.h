//===- InlinerOptions.h - Options of the inliner ----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Functions that return the values of the options -mlbridge-inliner*.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_INLINER_INLINEROPTIONS_H
#define MLBRIDGE_LLVM_INLINER_INLINEROPTIONS_H

#include "Inliner/CallFeatures.h"

#include "llvm/ADT/StringRef.h"

namespace MLBridge {

/// Returns the value of `-mlbridge-inliner=SPEC`, the spec of the model that
/// decides what to inline. Without this option, it is the model of
/// `-mlbridge-size=SPEC`, which receives all features. The spec has been
/// checked, but the model has not been opened. If the spec is empty, LLVM's
/// inliner runs unchanged.
llvm::StringRef inlinerSpec();

/// True if `-mlbridge-inliner-include-default` was given. The model then also
/// receives LLVM's own decision as the feature `inlining_default`.
bool inlinerIncludesDefault();

/// True if `-mlbridge-inliner-include-linkage` was given. The model then also
/// receives the features of Inliner/CallFeatures.h.
bool inlinerIncludesLinkage();
/// Reads the file of `-mlbridge-inliner-callee-files=FILE`. Without this
/// option, the result is empty. The message of an error begins with the file's
/// name.
Expected<CalleeFiles> readCalleeFiles();
/// True if `-mlbridge-inliner-name-calls` was given. The context of a request
/// then contains the decisionKey() of its call.
bool inlinerNamesCalls();

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_INLINER_INLINEROPTIONS_H
