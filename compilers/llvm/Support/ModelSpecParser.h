//===- ModelSpecParser.h - Parses options that are model specs --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelSpecParser parses options whose value is a model spec. An option uses
/// it through the type `cl::opt<std::string, false, ModelSpecParser>`. While
/// LLVM parses the command line, ModelSpecParser checks the spec, its options
/// and its paths.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SUPPORT_MODELSPECPARSER_H
#define MLBRIDGE_LLVM_SUPPORT_MODELSPECPARSER_H

#include "Support/Options.h"

#include "llvm/Support/CommandLine.h"

namespace MLBridge {

/// Begins a spec that names a file of decisions in place of a model.
inline constexpr llvm::StringLiteral DecisionScheme = "decisions:";

/// Checks the spec without creating the runner, because a `record:` runner
/// would already create its log file.
struct ModelSpecParser : llvm::cl::parser<std::string> {
  using llvm::cl::parser<std::string>::parser;
  bool parse(llvm::cl::Option &O, llvm::StringRef, llvm::StringRef Arg,
             std::string &Value) {
    if (Error E = runnerFactory().check(Arg))
      return O.error(E.message());
    Value = Arg.str();
    return false;
  }
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SUPPORT_MODELSPECPARSER_H
