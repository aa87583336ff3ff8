//===- Options.cpp - The plug-in's command line ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the options. Model specs are checked, including their options and
/// paths, while LLVM parses the command line. A typo therefore fails the
/// compile even if this compile would not have used the model.
///
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "BuiltinModels.h"
#include "Inliner/DecisionReplay.h"
#include "ModelSpecParser.h"

#include "MLCompilerBridge/Extend/AOTSchemes.h"
#ifdef MLBRIDGE_HAS_ONNX
#include "MLCompilerBridge/Runners/ONNXModelRunner.h"
#endif

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace MLBridge {

cl::OptionCategory &optionCategory() {
  // The category is a function-local static, because options in other files may
  // be constructed before the globals of this file.
  static cl::OptionCategory Category("ML-Compiler-Bridge options");
  return Category;
}

namespace {

cl::opt<OnError> OnErrorOpt(
    "mlbridge-on-error", cl::cat(optionCategory()), cl::init(OnError::Fallback),
    cl::desc("When a model fails:"),
    cl::values(clEnumValN(OnError::Fallback, "fallback",
                          "print one remark for the module and use LLVM's own "
                          "heuristic for the rest of it (default)"),
               clEnumValN(OnError::Fatal, "fatal", "fail the compile")));

cl::opt<bool> PrintStatisticsOpt(
    "mlbridge-print-statistics", cl::cat(optionCategory()),
    cl::desc("Print one line per module to stderr: number of decisions "
             "requested, made and deferred, agreement with LLVM if known, "
             "time"));

cl::opt<std::string> EnvironmentOpt(
    "mlbridge-environment", cl::cat(optionCategory()), cl::value_desc("spec"),
    cl::desc("The trainer that drives the environment, such as "
             "pipe:/tmp/trainer (default: the environment variable "
             "MLBRIDGE_SPEC)"));

/// Also accepts `decisions:FILE`, alone or as the end of a pipe of specs.
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

cl::opt<std::string> IR2VecVocabularyOpt(
    "mlbridge-ir2vec-vocabulary", cl::cat(optionCategory()),
    cl::value_desc("file"),
    cl::desc("The IR2Vec vocabulary for embeddings of modules and functions, "
             "in LLVM's JSON format"));

cl::opt<EmbeddingKind> IR2VecKindOpt(
    "mlbridge-ir2vec-kind", cl::cat(optionCategory()),
    cl::init(EmbeddingKind::Symbolic), cl::desc("Kind of IR2Vec embeddings:"),
    cl::values(clEnumValN(EmbeddingKind::Symbolic, "symbolic",
                          "each instruction by itself (default)"),
               clEnumValN(EmbeddingKind::FlowAware, "flow-aware",
                          "each instruction with the definitions of its "
                          "operands, whose weight decreases with distance"),
               clEnumValN(EmbeddingKind::LLVMFlowAware, "llvm-flow-aware",
                          "LLVM's variant, whose numbers grow without limit")));

cl::opt<Normalization> IR2VecNormalizationOpt(
    "mlbridge-ir2vec-normalization", cl::cat(optionCategory()),
    cl::init(Normalization::PerInstruction),
    cl::desc("Normalization of embeddings, which are sums over instructions:"),
    cl::values(clEnumValN(Normalization::None, "none", "none"),
               clEnumValN(Normalization::PerInstruction, "per-instruction",
                          "divide by the number of instructions (default)"),
               clEnumValN(Normalization::Logarithmic, "logarithmic",
                          "take the logarithm of each element's magnitude")));

} // namespace

OnError onModelError() { return OnErrorOpt; }
bool printStatistics() { return PrintStatisticsOpt; }
Expected<std::string> environmentSpec() {
  if (!EnvironmentOpt.empty())
    return EnvironmentOpt.getValue();
  if (std::optional<std::string> Spec = sys::Process::GetEnv("MLBRIDGE_SPEC"))
    if (!Spec->empty())
      return *Spec;
  return Error(ErrorCode::InvalidArgument,
               "no trainer; use -mlbridge-environment=SPEC or the environment "
               "variable MLBRIDGE_SPEC");
}
StringRef inlinerSpec() { return InlinerOpt; }
bool inlinerIncludesDefault() { return InlinerIncludeDefaultOpt; }
bool inlinerIncludesLinkage() { return InlinerIncludeLinkageOpt; }
StringRef inlinerCalleeFiles() { return InlinerCalleeFilesOpt; }
bool inlinerNamesCalls() { return InlinerNameCallsOpt; }
StringRef ir2vecVocabulary() { return IR2VecVocabularyOpt; }
EmbeddingOptions ir2vecOptions() {
  return {IR2VecKindOpt, IR2VecNormalizationOpt};
}
IR2VecOptionsGiven ir2vecOptionsGiven() {
  return {IR2VecKindOpt.getNumOccurrences() != 0,
          IR2VecNormalizationOpt.getNumOccurrences() != 0};
}

static RunnerFactory makeFactory() {
  RunnerFactory Factory;
  addBuiltinModels(Factory, builtinModels());
#ifdef MLBRIDGE_HAS_ONNX
  addONNX(Factory);
#endif
  Factory.setConnectTimeout(std::chrono::seconds(5));
  return Factory;
}

RunnerFactory runnerFactory() {
  // All copies of this factory share the loaded models. The factory is never
  // destroyed. At exit, the libraries of the models are unloaded first, so the
  // factory's destructor would call unloaded code.
  static const RunnerFactory &Factory = *new RunnerFactory(makeFactory());
  return Factory;
}

/// Returns the replacement for `{module}`. It contains the end of the module's
/// name, so that a person recognises the file, and a hash of the module's path,
/// so that the file name is unique.
static std::string fileNameFor(const Module &M) {
  constexpr std::size_t MaxReadable = 100;
  StringRef Identifier = M.getModuleIdentifier();
  std::string Name;
  for (char C : Identifier.take_back(MaxReadable)) {
    // Keep a dot only after a letter or a digit. The file name is then neither
    // ".." nor the name of a hidden file.
    bool Keep = isAlnum(C) || C == '-' ||
                (C == '.' && !Name.empty() && isAlnum(Name.back()));
    Name += Keep ? C : '_';
  }
  SmallString<256> Path(Identifier);
  // If the current folder has been deleted, use the path as given.
  static_cast<void>(sys::fs::make_absolute(Path));
  constexpr unsigned Digits = 16;
  return Name + "-" +
         utohexstr(xxh3_64bits(Path.str()), /*LowerCase=*/true, Digits);
}

std::string specForModule(StringRef Spec, const Module &M) {
  const std::string Name = fileNameFor(M);
  std::string Result;
  for (;;) {
    auto [Before, After] = Spec.split("{module}");
    Result += Before;
    if (Before.size() == Spec.size())
      return Result;
    Result += Name;
    Spec = After;
  }
}

} // namespace MLBridge
