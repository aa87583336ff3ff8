//===- InlinerOptions.cpp - Options of the inliner ------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the options.
///
//===----------------------------------------------------------------------===//

#include "Inliner/InlinerOptions.h"

#include "Inliner/DecisionReplay.h"
#include "Support/ModelSpecParser.h"
#include "Support/Options.h"
#include "Support/ReadFile.h"
#include "Support/SizeOption.h"

#include "llvm/Support/CommandLine.h"

using namespace llvm;

namespace MLBridge {
namespace {

/// Also accepts `decisions:FILE`, alone or at the end of a spec after `|`.
struct InlinerSpecParser : ModelSpecParser {
  using ModelSpecParser::ModelSpecParser;
  bool parse(cl::Option &O, StringRef Name, StringRef Arg, std::string &Value) {
    const DecisionSpec Spec = parseDecisionSpec(Arg);
    std::string Model;
    const bool NeedsModel = Spec.File.empty() || !Spec.Model.empty();
    if (NeedsModel && ModelSpecParser::parse(O, Name, Spec.Model, Model))
      return true;
    Value = Arg.str();
    return false;
  }
};

cl::opt<std::string, false, InlinerSpecParser> InlinerOpt(
    "mlbridge-inliner", cl::cat(optionCategory()), cl::value_desc("spec"),
    cl::desc("Let the model at <spec> decide what to inline, such as "
             "pipe:/tmp/advisor or record:{module}.log|none; waits 5s for the "
             "model unless the spec has ?connect=DURATION. The spec "
             "decisions:FILE replays the decisions of a file, and "
             "record:LOG|decisions:FILE also logs them"));

cl::opt<bool> InlinerIncludeDefaultOpt(
    "mlbridge-inliner-include-default", cl::cat(optionCategory()),
    cl::desc("Also give the model LLVM's own decision, as the feature "
             "inlining_default"));

cl::opt<bool> InlinerIncludeLinkageOpt(
    "mlbridge-inliner-include-linkage", cl::cat(optionCategory()),
    cl::desc("Also give the model the linkage and the uses of caller and "
             "callee, as the features of Inliner/CallFeatures.h"));

cl::opt<std::string> InlinerCalleeFilesOpt(
    "mlbridge-inliner-callee-files", cl::cat(optionCategory()),
    cl::value_desc("file"),
    cl::desc("The number of the program's files that emit each function, as "
             "lines `COUNT NAME`, for the feature callee_files"));

cl::opt<bool> InlinerNameCallsOpt(
    "mlbridge-inliner-name-calls", cl::cat(optionCategory()),
    cl::desc("Make the callee and the location of each call a part of the "
             "request's context, so that logs contain them"));

} // namespace

/// True if the model of -mlbridge-size decides. It needs all features.
static bool isForSize() {
  return InlinerOpt.empty() && !sizeModelSpec().empty();
}

StringRef inlinerSpec() { return isForSize() ? sizeModelSpec() : InlinerOpt; }
bool inlinerIncludesDefault() {
  return InlinerIncludeDefaultOpt || isForSize();
}
bool inlinerIncludesLinkage() {
  return InlinerIncludeLinkageOpt || isForSize();
}
bool inlinerNamesCalls() { return InlinerNameCallsOpt; }

Expected<CalleeFiles> readCalleeFiles() {
  const std::string &Path = InlinerCalleeFilesOpt;
  if (Path.empty())
    return CalleeFiles();
  Expected<CalleeFiles> Files = CalleeFiles::read(Path);
  if (!Files)
    return inFile(Path, Files.takeError());
  return Files;
}

} // namespace MLBridge
