//===- ModelSession.cpp - A module's model and its failures ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Creates runners from specs and reports their errors.
///
//===----------------------------------------------------------------------===//

#include "Support/ModelSession.h"

#include "Support/Options.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <unistd.h>

using namespace llvm;

namespace MLBridge {

void printLine(const Twine &Line) {
  // Use a separate, unbuffered stream, because llvm::errs() is not thread-safe.
  raw_fd_ostream Stderr(STDERR_FILENO, /*shouldClose=*/false,
                        /*unbuffered=*/true);
  Stderr << (Line + "\n").str();
  // Clear a write error, because the stream's destructor would end the process.
  Stderr.clear_error();
}

std::string withoutControls(StringRef Name) {
  std::string Shown;
  raw_string_ostream OS(Shown);
  for (const char C : Name)
    if (const auto Byte = static_cast<unsigned char>(C);
        Byte < 0x20 || Byte == 0x7F)
      OS << "\\x" << format_hex_no_prefix(Byte, 2);
    else
      OS << C;
  return Shown;
}

std::string ModelSession::prefix(StringRef Optimization, const Module &M) {
  return (Optimization + ": " + withoutControls(M.getModuleIdentifier()) + ": ")
      .str();
}

std::unique_ptr<ModelSession> ModelSession::open(StringRef Optimization,
                                                 StringRef Spec, Module &M) {
  Expected<std::unique_ptr<MLModelRunner>> Runner =
      runnerFactory().create(specForModule(Spec, M));
  if (!Runner) {
    M.getContext().emitError(prefix(Optimization, M) +
                             Runner.takeError().str());
    return nullptr;
  }
  return std::unique_ptr<ModelSession>(
      new ModelSession(Optimization, M, std::move(*Runner)));
}

ModelSession::~ModelSession() { flush(); }

void ModelSession::report(const std::string &Failure, StringRef WhatNow) {
  Reported = Failure;
  if (onModelError() == OnError::Fatal)
    M.getContext().emitError(Prefix + Failure);
  else
    // Print the remark directly instead of emitting a diagnostic. A warning
    // would become an error under clang's -Werror or lld's --fatal-warnings. A
    // remark or a note of a plug-in would not be shown by default.
    printLine("remark: " + Prefix + Failure + WhatNow);
}

void ModelSession::fail(const Error &E) {
  // Set this before reporting, because emitting an error ends the process if
  // the context has no diagnostic handler.
  Failed = true;
  report(E.str(), "; using LLVM's heuristic for the rest of this module");
}

void ModelSession::failAsInCopy(const std::string &Failure) {
  ++Failures;
  Failed = true;
  report(Failure, "; using LLVM's heuristic for the rest of this module");
}

void ModelSession::countUndecided(const Error &Why) {
  if (Why.isDeferred()) {
    ++Deferred;
    return;
  }
  ++Failures;
  fail(Why);
}

std::string ModelSession::statistics() const {
  std::string Line = Prefix + formatv("requests={0} deferred={1} failed={2}",
                                      Requests, Deferred, Failures)
                                  .str();
  if (InCopies != 0)
    Line += formatv(" in_trials={0}", InCopies);
  return Line;
}

void ModelSession::flush() {
  if (Error E = Runner->flush())
    if (std::string Failure = E.str(); Failure != Reported)
      report(Failure, "");
}

} // namespace MLBridge
