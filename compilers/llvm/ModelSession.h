//===- ModelSession.h - One module's model, and its failures ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelSession: the runner that decides for one optimisation in one module,
/// and what happens when it fails. Every optimisation of the plug-in has one a
/// module; so parallel ThinLTO back ends share nothing.
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

/// Prints \p Line and a newline to stderr, in one piece: other back ends may
/// print at the same time. That it cannot be written is no failure.
void printLine(const llvm::Twine &Line);

class ModelSession {
public:
  /// A session of the model that \p Spec names (with `{module}` expanded), for
  /// \p Optimization, such as "mlbridge-inliner", in \p M. Null when there is
  /// no such model: that is a mistake in the command line and no failure to
  /// fall back from, so an error has been emitted.
  static std::unique_ptr<ModelSession>
  open(llvm::StringRef Optimization, llvm::StringRef Spec, llvm::Module &M);

  /// Flushes.
  ~ModelSession();

  MLModelRunner &runner() { return *Runner; }

  /// Reports \p E as -mlbridge-on-error says: a remark, which no option of the
  /// compiler hides or makes an error of, or an error that fails the compile.
  /// From then on the optimisation asks no more.
  void fail(const Error &E);
  bool hasFailed() const { return Failed; }

  /// Has the runner write what it keeps back, such as the end of a log; reports
  /// a failure as fail() does, but once, and asks on. Call it while the module
  /// has not been written: an error then leaves no output behind.
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
  /// What the user has been told last.
  std::string Reported;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_MODELSESSION_H
