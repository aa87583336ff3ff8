//===- Applicability.cpp - When phase ordering applies --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Looks for profiles, instrumentation and sanitizers in the module and in the
/// pipeline that LLVM would build.
///
//===----------------------------------------------------------------------===//

#include "Pipeline/Applicability.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace MLBridge {

bool isMostlyForSize(const Module &M) {
  std::uint64_t Small = 0, All = 0;
  for (const Function &F : M) {
    // Skip functions that were imported for inlining, because no code is
    // generated for them.
    if (F.isDeclarationForLinker())
      continue;
    const std::uint64_t Size = F.getInstructionCount();
    All += Size;
    Small += F.hasOptSize() ? Size : 0;
  }
  return 2 * Small > All;
}

StringRef whyNotReplaced(PassBuilder &PB) {
  static constexpr std::pair<StringLiteral, StringLiteral> Passes[] = {
      {"PGOInstrumentationGen", "a profile is generated"},
      {"SampleProfileProbePass", "pseudo probes are inserted"},
      {"PGOInstrumentationUse", "a profile is used"},
      {"SampleProfileLoaderPass", "a profile is used"},
      {"MemProfUsePass", "a profile is used"},
  };
  // Build a pipeline and look for the passes that PassBuilder's PGOOptions add,
  // because these options are private.
  std::string Pipeline;
  raw_string_ostream OS(Pipeline);
  PB.buildPerModuleDefaultPipeline(OptimizationLevel::Oz)
      .printPipeline(OS, [](StringRef Class) { return Class; });
  for (const auto &[Pass, Why] : Passes)
    if (StringRef(Pipeline).contains(Pass))
      return Why;
  return "";
}

StringRef whyNotReplaced(const Module &M) {
  // Keep LLVM's pipeline, because an episode does not insert calls at the entry
  // and exit of functions.
  if (any_of(M, [](const Function &F) {
        return F.hasFnAttribute("instrument-function-entry") ||
               F.hasFnAttribute("instrument-function-exit");
      }))
    return "function calls are instrumented";
  return "";
}

StringRef whyNotMeasured(const Module &M) {
  static constexpr Attribute::AttrKind Sanitizers[] = {
      Attribute::SanitizeAddress,
      Attribute::SanitizeHWAddress,
      Attribute::SanitizeMemory,
      Attribute::SanitizeThread,
      Attribute::SanitizeType,
      Attribute::SanitizeRealtime,
      Attribute::SanitizeNumericalStability,
      Attribute::SanitizeAllocToken,
  };
  if (any_of(M, [](const Function &F) {
        return !F.isDeclaration() &&
               any_of(Sanitizers, [&](Attribute::AttrKind Kind) {
                 return F.hasFnAttribute(Kind);
               });
      }))
    return "sanitizers add code later";
  if (M.getFunction("llvm.instrprof.increment") ||
      M.getNamedMetadata("llvm.gcov"))
    return "counters are added later";
  return "";
}

/// True if LLVM replaces indirect jumps in \p F by calls of functions that it
/// adds. The outliner splits the code generator in two parts, which makes LLVM
/// crash when it adds these functions.
static bool addsThunks(const Function &F) {
  const StringRef Features =
      F.getFnAttribute("target-features").getValueAsString();
  return F.hasFnAttribute(Attribute::SpeculativeLoadHardening) ||
         Features.contains("+retpoline-indirect-") ||
         Features.contains("+lvi-");
}

StringRef whyNotOutlined(const Module &M) {
  const Triple &Target = M.getTargetTriple();
  // The outliner breaks the tables of Windows for exceptions.
  if (Target.isOSBinFormatCOFF())
    return "its target is Windows";
  if (!Target.isX86())
    return "";
  // Outlined code may refer to labels of another function.
  if (M.getCodeModel() == CodeModel::Large)
    return "its code model is large";
  if (any_of(M, addsThunks))
    return "its indirect jumps are hardened";
  // An outlined function would return without the thunk.
  if (any_of(M, [](const Function &F) {
        return F.hasFnAttribute(Attribute::FnRetThunkExtern);
      }))
    return "its returns are hardened";
  return "";
}

} // namespace MLBridge
