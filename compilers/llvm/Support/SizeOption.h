//===- SizeOption.h - The option -mlbridge-size -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The option -mlbridge-size=SPEC makes several decisions about code size:
///
/// - With a file of decisions (`decisions:FILE`), the file decides about
///   inlining, passes and outlining.
/// - With a model, the model decides about inlining, the built-in model of
///   phase ordering decides about passes, and repeated code is outlined.
///
/// -mlbridge-inliner and -mlbridge-phase-ordering take precedence. Therefore
/// the inliner and phase ordering also read this option.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SUPPORT_SIZEOPTION_H
#define MLBRIDGE_LLVM_SUPPORT_SIZEOPTION_H

#include "llvm/ADT/StringRef.h"

namespace MLBridge {

/// Returns the file of `decisions:FILE`, or an empty string.
llvm::StringRef sizeDecisionsFile();
/// Returns the spec of the model, or an empty string.
llvm::StringRef sizeModelSpec();

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SUPPORT_SIZEOPTION_H
