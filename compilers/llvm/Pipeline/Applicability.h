//===- Applicability.h - When phase ordering applies ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Decides whether a model may replace LLVM's pipeline for a module. LLVM's
/// pipelines do more than optimise. For example, they insert instrumentation,
/// which must not be lost.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PIPELINE_APPLICABILITY_H
#define MLBRIDGE_LLVM_PIPELINE_APPLICABILITY_H

#include "llvm/ADT/StringRef.h"

namespace llvm {
class Module;
class PassBuilder;
} // namespace llvm

namespace MLBridge {

/// True if more than half of the instructions for which \p M generates code are
/// in functions marked `optsize` or `minsize`.
bool isMostlyForSize(const llvm::Module &M);

/// Returns the reason why the pipelines that \p PB builds must not be replaced,
/// or an empty string if they can be replaced. The only possible reason is a
/// profile. A profile describes the code at one position of a pipeline, so the
/// passes that write or read it must run at this position.
llvm::StringRef whyNotReplaced(llvm::PassBuilder &PB);
/// Returns the reason why a pipeline for \p M must not be replaced, or an empty
/// string if it can be replaced.
llvm::StringRef whyNotReplaced(const llvm::Module &M);

/// Returns the reason why the code that a search measures would differ from the
/// final code of \p M. Returns an empty string if the module shows no such
/// reason.
llvm::StringRef whyNotMeasured(const llvm::Module &M);

/// Returns the reason why LLVM's machine outliner must not change \p M, or an
/// empty string. On x86, clang never runs the outliner by itself, and LLVM 22
/// makes wrong code or fails in some cases.
llvm::StringRef whyNotOutlined(const llvm::Module &M);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PIPELINE_APPLICABILITY_H
