//===- Options.cpp - The plug-in's command line ---------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The options themselves. A model spec is checked while the command line is
/// parsed, its options and paths too, so that a typing error ends the compile
/// before it has begun, and also where the model would not have been asked.
///
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "BuiltinModels.h"
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
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace MLBridge {

cl::OptionCategory &optionCategory() {
  // Made when the first option is, whichever file that is in.
  static cl::OptionCategory Category("ML-Compiler-Bridge options");
  return Category;
}

namespace {

cl::opt<OnError> OnErrorOpt(
    "mlbridge-on-error", cl::cat(optionCategory()), cl::init(OnError::Fallback),
    cl::desc("What to do when a model fails:"),
    cl::values(clEnumValN(OnError::Fallback, "fallback",
                          "say so once a module, and use LLVM's own "
                          "heuristic for the rest of it (default)"),
               clEnumValN(OnError::Fatal, "fatal", "fail the compile")));

cl::opt<bool> PrintStatisticsOpt(
    "mlbridge-print-statistics", cl::cat(optionCategory()),
    cl::desc("Print one line per module to stderr: decisions asked, taken and "
             "deferred, agreement with LLVM where it is known, time"));

cl::opt<std::string, false, ModelSpecParser> InlinerOpt(
    "mlbridge-inliner", cl::cat(optionCategory()), cl::value_desc("spec"),
    cl::desc("Let the model that <spec> names decide what is inlined, such as "
             "pipe:/tmp/advisor or record:{module}.log|none; waits 5s for it "
             "unless the spec says ?connect=DURATION"));

cl::opt<bool> InlinerIncludeDefaultOpt(
    "mlbridge-inliner-include-default", cl::cat(optionCategory()),
    cl::desc("Give the model LLVM's own decision too, as the feature "
             "inlining_default"));

cl::opt<std::string> IR2VecVocabularyOpt(
    "mlbridge-ir2vec-vocabulary", cl::cat(optionCategory()),
    cl::value_desc("file"),
    cl::desc("The IR2Vec vocabulary, in LLVM's JSON form, by which modules and "
             "functions become vectors"));

cl::opt<EmbeddingKind> IR2VecKindOpt(
    "mlbridge-ir2vec-kind", cl::cat(optionCategory()),
    cl::init(EmbeddingKind::Symbolic),
    cl::desc("What an IR2Vec embedding is made of:"),
    cl::values(clEnumValN(EmbeddingKind::Symbolic, "symbolic",
                          "each instruction by itself (default)"),
               clEnumValN(EmbeddingKind::FlowAware, "flow-aware",
                          "each with those that its operands come from, which "
                          "weigh ever less"),
               clEnumValN(EmbeddingKind::LLVMFlowAware, "llvm-flow-aware",
                          "LLVM's, whose numbers grow without a limit")));

cl::opt<Normalization> IR2VecNormalizationOpt(
    "mlbridge-ir2vec-normalization", cl::cat(optionCategory()),
    cl::init(Normalization::PerInstruction),
    cl::desc("What becomes of an embedding, which is a sum over instructions:"),
    cl::values(clEnumValN(Normalization::None, "none", "nothing"),
               clEnumValN(Normalization::PerInstruction, "per-instruction",
                          "it is divided by their number (default)"),
               clEnumValN(Normalization::Logarithmic, "logarithmic",
                          "the logarithm of each element's size")));

} // namespace

OnError onModelError() { return OnErrorOpt; }
bool printStatistics() { return PrintStatisticsOpt; }
StringRef inlinerSpec() { return InlinerOpt; }
bool inlinerIncludesDefault() { return InlinerIncludeDefaultOpt; }
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
  // Its copies share the models that are loaded. It is never destroyed, since
  // at the end of the process the library under a model goes first.
  static const RunnerFactory &Factory = *new RunnerFactory(makeFactory());
  return Factory;
}

/// What stands for `{module}`: the end of the module's name, for people, and a
/// hash of its path, for what the former leaves out.
static std::string fileNameFor(const Module &M) {
  constexpr std::size_t MaxReadable = 100;
  StringRef Identifier = M.getModuleIdentifier();
  std::string Name;
  for (char C : Identifier.take_back(MaxReadable)) {
    // A dot only inside a word: no name is to be hidden, or to go upwards.
    bool Keep = isAlnum(C) || C == '-' ||
                (C == '.' && !Name.empty() && isAlnum(Name.back()));
    Name += Keep ? C : '_';
  }
  SmallString<256> Path(Identifier);
  // In a folder that is gone, what was given has to do.
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
