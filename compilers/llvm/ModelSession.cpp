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

#include "ModelSession.h"

#include "Options.h"

#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <unistd.h>

using namespace llvm;

namespace MLBridge {

void printLine(const Twine &Line) {
  // A separate, unbuffered stream shares only the write itself.
  raw_fd_ostream Stderr(STDERR_FILENO, /*shouldClose=*/false,
                        /*unbuffered=*/true);
  Stderr << (Line + "\n").str();
  // Otherwise LLVM ends the process when an error goes unreported.
  Stderr.clear_error();
}

static void emitError(Module &M, const Twine &Message) {
  M.getContext().diagnose(DiagnosticInfoGeneric(Message, DS_Error));
}

/// Escapes line breaks and terminal control characters in a module's name,
/// which is a file name.
static std::string withoutControls(StringRef Name) {
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

std::string ModelSession::prefix(StringRef Optimization, Module &M) {
  return (Optimization + ": " + withoutControls(M.getModuleIdentifier()) + ": ")
      .str();
}

std::unique_ptr<ModelSession> ModelSession::open(StringRef Optimization,
                                                 StringRef Spec, Module &M) {
  Expected<std::unique_ptr<MLModelRunner>> Runner =
      runnerFactory().create(specForModule(Spec, M));
  if (!Runner) {
    emitError(M, prefix(Optimization, M) + Runner.takeError().str());
    return nullptr;
  }
  return std::unique_ptr<ModelSession>(
      new ModelSession(Optimization, M, std::move(*Runner)));
}

ModelSession::~ModelSession() { flush(); }

void ModelSession::report(const std::string &Failure, StringRef WhatNow) {
  Reported = Failure;
  if (onModelError() == OnError::Fatal)
    emitError(M, Prefix + Failure);
  else
    // Not through the diagnostics engine: -Werror in clang and --fatal-warnings
    // in lld turn warnings into errors, and neither shows a plug-in's remarks
    // or notes by default.
    printLine("remark: " + Prefix + Failure + WhatNow);
}

void ModelSession::fail(const Error &E) {
  // Set first: without a handler in the context, emitting an error exits.
  Failed = true;
  report(E.str(), "; using LLVM's heuristic for the rest of this module");
}

void ModelSession::flush() {
  if (Error E = Runner->flush())
    if (std::string Failure = E.str(); Failure != Reported)
      report(Failure, "");
}

} // namespace MLBridge
