//===- Options.h - The plug-in's command line -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The plug-in's options as functions; `opt -load-pass-plugin=X.so --help`
/// lists them.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_OPTIONS_H
#define MLBRIDGE_LLVM_OPTIONS_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace llvm {
class Module;
} // namespace llvm

namespace MLBridge {

/// What a model's failure means for the compile.
enum class OnError {
  Fallback, ///< One remark a module; LLVM's own heuristic does the rest.
  Fatal,    ///< The compile fails.
};

/// `-mlbridge-on-error=fallback|fatal`; fallback unless given.
OnError onModelError();

/// `-mlbridge-print-statistics`: one line to stderr per module and
/// optimisation.
bool printStatistics();

/// `-mlbridge-inliner=SPEC`: the model that decides what is inlined. Its syntax
/// and scheme have been checked; empty when LLVM's inliner is to be left alone.
llvm::StringRef inlinerSpec();

/// `-mlbridge-inliner-include-default`: the model is told LLVM's own decision
/// at each state, as the feature `inlining_default`.
bool inlinerIncludesDefault();

/// \p Spec with each `{module}` replaced by the name of \p M, made fit for a
/// file name: slashes and the like become `_`. It gives a log to each module,
/// where one command line compiles many.
std::string specForModule(llvm::StringRef Spec, const llvm::Module &M);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_OPTIONS_H
