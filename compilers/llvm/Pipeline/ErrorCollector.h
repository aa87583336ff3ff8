//===- ErrorCollector.h - Collects the errors of passes ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ErrorCollector and ErrorScope catch the errors that passes report to an LLVM
/// context. A search runs passes on copies of a module. If such passes fail,
/// the user should not see their errors.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PIPELINE_ERRORCOLLECTOR_H
#define MLBRIDGE_LLVM_PIPELINE_ERRORCOLLECTOR_H

#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LLVMRemarkStreamer.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <string>
#include <utility>

namespace MLBridge {

/// Stores errors and drops other diagnostics. Without this handler, an error
/// would end the process.
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

/// Collects the errors of an existing context while this object lives, and
/// drops other diagnostics. No remark is written to the compiler's remark file.
class ErrorScope {
public:
  explicit ErrorScope(llvm::LLVMContext &Context)
      : Context(Context), Before(Context.getDiagnosticHandler()),
        WritesRecord(Context.getLLVMRemarkStreamer() &&
                     Context.getMainRemarkStreamer()) {
    // A context writes remarks to the file before it calls its handler.
    if (WritesRecord)
      Context.setLLVMRemarkStreamer(nullptr);
    auto Collector = std::make_unique<ErrorCollector>();
    Errors = Collector.get();
    Context.setDiagnosticHandler(std::move(Collector));
  }
  ErrorScope(const ErrorScope &) = delete;
  ErrorScope &operator=(const ErrorScope &) = delete;
  /// Restores the previous handler. A context does not report whether it
  /// respected filters, so this function restores the handler with filters.
  /// clang's handler filters too, but filtering twice is harmless.
  ~ErrorScope() {
    Context.setDiagnosticHandler(std::move(Before), /*RespectFilters=*/true);
    if (WritesRecord)
      Context.setLLVMRemarkStreamer(std::make_unique<llvm::LLVMRemarkStreamer>(
          *Context.getMainRemarkStreamer()));
  }
  std::string take() { return Errors->take(); }

private:
  llvm::LLVMContext &Context;
  std::unique_ptr<llvm::DiagnosticHandler> Before;
  bool WritesRecord;
  /// Owned by the context.
  ErrorCollector *Errors;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PIPELINE_ERRORCOLLECTOR_H
