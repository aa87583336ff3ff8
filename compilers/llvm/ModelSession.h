//===- ModelSession.h - A module's model and its failures -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelSession: the runner that decides for one optimisation in one module,
/// and the handling of its failures. Every optimisation of the plug-in opens
/// one session for each module, so parallel ThinLTO back ends share nothing.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_MODELSESSION_H
#define MLBRIDGE_LLVM_MODELSESSION_H

#include "MLCompilerBridge/MLModelRunner.h"

#include "llvm/ADT/StringRef.h"

#include <memory>
#include <string>

namespace llvm {
class Module;
class Twine;
} // namespace llvm

namespace MLBridge {

/// Prints \p Line and a newline to stderr in one write, since other back ends
/// may print at the same time. Ignores write errors.
void printLine(const llvm::Twine &Line);

class ModelSession {
public:
  /// Opens a session with the model that \p Spec names (after expanding
  /// `{module}`), for \p Optimization, such as "mlbridge-inliner", in \p M. If
  /// the model cannot be created, emits an error and returns null: that is a
  /// mistake in the command line, not a failure to fall back from.
  static std::unique_ptr<ModelSession>
  open(llvm::StringRef Optimization, llvm::StringRef Spec, llvm::Module &M);

  /// Flushes the runner.
  ~ModelSession();

  MLModelRunner &runner() { return *Runner; }

  /// Reports \p E according to -mlbridge-on-error: as a remark, which no
  /// compiler option hides or turns into an error, or as an error that fails
  /// the compile. The optimisation must send no further requests.
  void fail(const Error &E);
  bool hasFailed() const { return Failed; }

  /// Makes the runner write what it buffers, such as the end of a log. Reports
  /// a failure like fail(), but only once, and the session remains usable. Call
  /// this before the module is written, so that an error leaves no output.
  void flush();

private:
  ModelSession(llvm::StringRef Optimization, llvm::Module &M,
               std::unique_ptr<MLModelRunner> Runner)
      : M(M), Prefix(prefix(Optimization, M)), Runner(std::move(Runner)) {}

  /// "mlbridge-inliner: a.c: "
  static std::string prefix(llvm::StringRef Optimization, llvm::Module &M);
  void report(const std::string &Failure, llvm::StringRef WhatNow);

  llvm::Module &M;
  const std::string Prefix;
  const std::unique_ptr<MLModelRunner> Runner;
  bool Failed = false;
  /// The last message that was reported.
  std::string Reported;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_MODELSESSION_H
