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

/// The category of all of them, also of those that a folder has for itself.
llvm::cl::OptionCategory &optionCategory();

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

/// `-mlbridge-inliner=SPEC`: the model that decides what is inlined. What can
/// be known of it without opening anything has been checked; empty when LLVM's
/// inliner is to be left alone.
llvm::StringRef inlinerSpec();

/// `-mlbridge-inliner-include-default`: the model is told LLVM's own decision
/// at each state, as the feature `inlining_default`.
bool inlinerIncludesDefault();

/// `-mlbridge-ir2vec-vocabulary=FILE`: what embeddings are made with; empty
/// when none was named.
llvm::StringRef ir2vecVocabulary();

/// `-mlbridge-ir2vec-kind`, `-mlbridge-ir2vec-normalization`.
EmbeddingOptions ir2vecOptions();
/// Whether the command line has these options, or they are defaults.
struct IR2VecOptionsGiven {
  bool Kind, Normalization;
};
IR2VecOptionsGiven ir2vecOptionsGiven();

/// Makes the runners of this plug-in. Unless the spec has `connect`, they wait
/// 5 s for the model, not the library's 30: every compile waits that long, and
/// in silence, where a build's model is not there. A model in this process is
/// loaded when it is first asked, once for all modules and threads.
RunnerFactory runnerFactory();

/// \p Spec with each `{module}` replaced by a file name for \p M: its own, in
/// which slashes and the like become `_` and of which the last 100 characters
/// are kept, and a hash of its path. It gives a log to each module, where many
/// are compiled side by side.
std::string specForModule(llvm::StringRef Spec, const llvm::Module &M);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_OPTIONS_H
