//===- SizeOption.cpp - The option -mlbridge-size -------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the option.
///
//===----------------------------------------------------------------------===//

#include "Support/SizeOption.h"

#include "Support/ModelSpecParser.h"
#include "Support/Options.h"

#include "llvm/Support/CommandLine.h"

using namespace llvm;

namespace MLBridge {
namespace {

struct SizeSpecParser : ModelSpecParser {
  using ModelSpecParser::ModelSpecParser;
  bool parse(cl::Option &O, StringRef Name, StringRef Arg, std::string &Value) {
    if (Arg == DecisionScheme)
      return O.error("expected decisions:FILE or a model");
    if (!Arg.starts_with(DecisionScheme))
      return ModelSpecParser::parse(O, Name, Arg, Value);
    Value = Arg.str();
    return false;
  }
};

cl::opt<std::string, false, SizeSpecParser> SizeOpt(
    "mlbridge-size", cl::cat(optionCategory()), cl::value_desc("spec"),
    cl::desc(
        "Make the code as small as possible. The spec decisions:FILE replays "
        "the decisions about inlining, passes and outlining in a file that "
        "mlbridge search smallest-code has written. With the spec of a model, "
        "such as builtin:smallest_code, the model decides about inlining, the "
        "model builtin:phase_ordering_oz decides about passes, and repeated "
        "code is outlined"));

} // namespace

StringRef sizeDecisionsFile() {
  StringRef Spec = SizeOpt;
  return Spec.consume_front(DecisionScheme) ? Spec : StringRef();
}

StringRef sizeModelSpec() {
  const StringRef Spec = SizeOpt;
  return Spec.starts_with(DecisionScheme) ? StringRef() : Spec;
}

} // namespace MLBridge
