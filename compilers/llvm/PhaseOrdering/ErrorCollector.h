//===- ErrorCollector.h - What passes complain of ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Passes tell a context what is wrong. Where their work is tried only, nobody
/// else is to hear of it.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_ERRORCOLLECTOR_H
#define MLBRIDGE_LLVM_PHASEORDERING_ERRORCOLLECTOR_H

#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <string>
#include <utility>

namespace MLBridge {

/// Keeps errors, which would end the process, and drops all else.
class ErrorCollector final : public llvm::DiagnosticHandler {
public:
  bool handleDiagnostics(const llvm::DiagnosticInfo &Diagnostic) override {
    if (Diagnostic.getSeverity() != llvm::DS_Error)
      return true;
    llvm::raw_string_ostream OS(Text);
    if (!Text.empty())
      OS << "; ";
    llvm::DiagnosticPrinterRawOStream Printer(OS);
    Diagnostic.print(Printer);
    return true;
  }
  std::string take() { return std::exchange(Text, {}); }

private:
  std::string Text;
};

/// Collects the errors of somebody else's context, for as long as it lives.
class ErrorScope {
public:
  explicit ErrorScope(llvm::LLVMContext &Context)
      : Context(Context), Before(Context.getDiagnosticHandler()) {
    auto Collector = std::make_unique<ErrorCollector>();
    Errors = Collector.get();
    Context.setDiagnosticHandler(std::move(Collector));
  }
  ErrorScope(const ErrorScope &) = delete;
  ErrorScope &operator=(const ErrorScope &) = delete;
  /// Whether filters were respected, a context does not tell; clang's handler
  /// filters the same once more.
  ~ErrorScope() {
    Context.setDiagnosticHandler(std::move(Before), /*RespectFilters=*/true);
  }
  std::string take() { return Errors->take(); }

private:
  llvm::LLVMContext &Context;
  std::unique_ptr<llvm::DiagnosticHandler> Before;
  /// The context's.
  ErrorCollector *Errors;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_ERRORCOLLECTOR_H
