//===- ModelSpecParser.h - Parses options that are model specs --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelSpecParser: the parser of `cl::opt<std::string, false,
/// ModelSpecParser>`, an option whose value is a model spec. It checks the
/// spec, with its options and paths, while the command line is parsed.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_MODELSPECPARSER_H
#define MLBRIDGE_LLVM_MODELSPECPARSER_H

#include "Options.h"

#include "llvm/Support/CommandLine.h"

namespace MLBridge {

/// Checks the spec without making the runner, which would already create the
/// file of a `record:`.
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

#endif // MLBRIDGE_LLVM_MODELSPECPARSER_H
