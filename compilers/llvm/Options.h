//===- Options.h - The plug-in's command line -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Access to the plug-in's options. `opt -load-pass-plugin=X.so --help` lists
/// them.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_OPTIONS_H
#define MLBRIDGE_LLVM_OPTIONS_H

#include "IR2Vec/ModuleEmbedder.h"

#include "MLCompilerBridge/Extend/RunnerFactory.h"

#include "llvm/ADT/StringRef.h"

#include <string>

namespace llvm {
class Module;
namespace cl {
class OptionCategory;
} // namespace cl
} // namespace llvm

namespace MLBridge {

/// The category of all options, including those that subfolders define.
llvm::cl::OptionCategory &optionCategory();

/// The effect of a model's failure on the compile.
enum class OnError {
  Fallback, ///< Print one remark for the module and use LLVM's heuristic.
  Fatal,    ///< The compile fails.
};

/// `-mlbridge-on-error=fallback|fatal`; default: fallback.
OnError onModelError();

/// `-mlbridge-print-statistics`: prints one line to stderr for each module and
/// optimisation.
bool printStatistics();

/// `-mlbridge-inliner=SPEC`: the model that decides what to inline. Already
/// checked, apart from opening the model. Empty: LLVM's inliner runs unchanged.
llvm::StringRef inlinerSpec();

/// `-mlbridge-inliner-include-default`: the model also gets LLVM's own
/// decision, as the feature `inlining_default`.
bool inlinerIncludesDefault();

/// `-mlbridge-ir2vec-vocabulary=FILE`: the vocabulary for embeddings; empty if
/// not given.
llvm::StringRef ir2vecVocabulary();

/// `-mlbridge-ir2vec-kind`, `-mlbridge-ir2vec-normalization`.
EmbeddingOptions ir2vecOptions();
/// True for options that the command line sets.
struct IR2VecOptionsGiven {
  bool Kind, Normalization;
};
IR2VecOptionsGiven ir2vecOptionsGiven();

/// The factory for this plug-in's runners. Unless the spec has `connect`, they
/// wait 5 s for the model instead of the library's 30 s: if the model is
/// missing, every compile of a build waits this long without a message. A model
/// in this process is loaded at its first request, once for all modules and
/// threads.
RunnerFactory runnerFactory();

/// Replaces each `{module}` in \p Spec with a file name for \p M: the last 100
/// characters of its name, with slashes and similar characters replaced by `_`,
/// and a hash of its path. This gives each module its own log when many are
/// compiled in parallel.
std::string specForModule(llvm::StringRef Spec, const llvm::Module &M);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_OPTIONS_H
