//===- ModelSpecParser.h - Options that name a model ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelSpecParser: the parser of `cl::opt<std::string, false,
/// ModelSpecParser>`, an option whose value is a model spec. It is checked
/// while the command line is parsed, its options and paths too.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_MODELSPECPARSER_H
#define MLBRIDGE_LLVM_MODELSPECPARSER_H

#include "Options.h"

#include "llvm/Support/CommandLine.h"

namespace MLBridge {

/// Checks what can be checked before there is a module: making the runner would
/// create the file of a `record:` already.
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
