//===- ModelSession.cpp - One module's model, and its failures ------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From a spec to a runner, and from an Error to one of LLVM's diagnostics.
///
//===----------------------------------------------------------------------===//

#include "ModelSession.h"

#include "Options.h"

#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace MLBridge {

static void diagnose(Module &M, DiagnosticSeverity Severity,
                     const Twine &Message) {
  M.getContext().diagnose(DiagnosticInfoGeneric(Message, Severity));
}

std::string ModelSession::prefix(StringRef Optimization, Module &M) {
  return (Optimization + ": " + M.getModuleIdentifier() + ": ").str();
}

std::unique_ptr<ModelSession> ModelSession::open(StringRef Optimization,
                                                 StringRef Spec, Module &M) {
  Expected<std::unique_ptr<MLModelRunner>> Runner =
      createModelRunner(specForModule(Spec, M));
  if (!Runner) {
    diagnose(M, DS_Error, prefix(Optimization, M) + Runner.takeError().str());
    return nullptr;
  }
  return std::unique_ptr<ModelSession>(
      new ModelSession(Optimization, M, std::move(*Runner)));
}

void ModelSession::fail(const Error &E) {
  // Set first: with no handler in the context, an error does not return.
  Failed = true;
  if (onModelError() == OnError::Fatal)
    diagnose(M, DS_Error, Prefix + E.str());
  else
    diagnose(M, DS_Warning,
             Prefix + E.str() +
                 "; using LLVM's heuristic for the rest of this module");
}

} // namespace MLBridge
