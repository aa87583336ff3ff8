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

#include "Support/Options.h"

#include "Support/BuiltinModels.h"
#include "Support/ModelSpecParser.h"

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
