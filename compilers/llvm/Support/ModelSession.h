//===- ModelSession.h - A module's model and its failures -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelSession owns the runner that decides for one optimisation in one
/// module, and reports the runner's failures. Every optimisation of the plug-in
/// opens its own session for each module, so parallel ThinLTO back ends share
/// nothing.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SUPPORT_MODELSESSION_H
#define MLBRIDGE_LLVM_SUPPORT_MODELSESSION_H

#include "MLCompilerBridge/MLModelRunner.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <memory>
#include <string>

namespace llvm {
class Module;
class Twine;
} // namespace llvm

namespace MLBridge {

/// Prints \p Line and a newline to stderr. The function uses a single write,
/// because other ThinLTO back ends may print at the same time. Write errors are
/// ignored.
void printLine(const llvm::Twine &Line);

/// Escapes line breaks and control characters in \p Name, for example as
/// `\x0a`. Names of modules, functions and actions can contain characters that
/// would disturb a terminal.
std::string withoutControls(llvm::StringRef Name);

class ModelSession {
public:
  /// Opens a session for \p Optimization, such as "mlbridge-inliner", in the
  /// module \p M. \p Spec is the model spec, in which `{module}` is expanded
  /// first. If the runner cannot be created, the function emits an error and
  /// returns null. The function does so even with -mlbridge-on-error=fallback,
  /// because the cause is a mistake in the command line.
  static std::unique_ptr<ModelSession>
  open(llvm::StringRef Optimization, llvm::StringRef Spec, llvm::Module &M);

  /// Returns the start of each message, for example "mlbridge-inliner: a.c: ".
  static std::string prefix(llvm::StringRef Optimization,
                            const llvm::Module &M);

  /// Flushes the runner.
  ~ModelSession();

  MLModelRunner &runner() { return *Runner; }

  /// Reports \p E. With -mlbridge-on-error=fallback, the report is a remark,
  /// which no compiler option hides or turns into an error. With `fatal`, the
  /// report is an error that fails the compile. After this call, the
  /// optimisation must not send further requests.
  void fail(const Error &E);
  bool hasFailed() const { return Failed; }
  /// The text of the last report, or an empty string.
  const std::string &reported() const { return Reported; }
  /// Like fail(), if this session's copy in a forked process has reported
  /// \p Failure there. Also counts the failure.
  void failAsInCopy(const std::string &Failure);
  /// Counts \p Sent requests that this session's copy in a forked process has
  /// sent.
  void countInCopy(std::uint64_t Sent) { InCopies += Sent; }

  /// Counts a request.
  void countRequest() { ++Requests; }
  /// Counts the last request as undecided because of \p Why. If the model has
  /// not deferred, also calls fail().
  void countUndecided(const Error &Why);
  std::uint64_t requests() const { return Requests; }
  /// Returns the counts as a line without a newline, for example
  /// "mlbridge-regalloc: a.c: requests=2 deferred=1 failed=0". If copies have
  /// sent requests, the line also has their number, for example " in_trials=9".
  std::string statistics() const;

  /// Makes the runner write its buffers, such as the end of a log. A failure is
  /// reported in the same way as by fail(), but the session remains usable, and
  /// a repeated failure is not reported again. Call flush() before the compiler
  /// writes the module, because the compiler writes no output after an error.
  void flush();

private:
  ModelSession(llvm::StringRef Optimization, llvm::Module &M,
               std::unique_ptr<MLModelRunner> Runner)
      : M(M), Prefix(prefix(Optimization, M)), Runner(std::move(Runner)) {}

  void report(const std::string &Failure, llvm::StringRef WhatNow);

  llvm::Module &M;
  const std::string Prefix;
  const std::unique_ptr<MLModelRunner> Runner;
  bool Failed = false;
  std::uint64_t Requests = 0, Deferred = 0, Failures = 0, InCopies = 0;
  /// The error text of the last report.
  std::string Reported;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SUPPORT_MODELSESSION_H
