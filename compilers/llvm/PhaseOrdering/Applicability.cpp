//===- Applicability.cpp - Where phase ordering is in place ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// By what the module and the compiler's options say.
///
//===----------------------------------------------------------------------===//

#include "PhaseOrdering/Applicability.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace MLBridge {

bool isMostlyForSize(const Module &M) {
  std::uint64_t Small = 0, All = 0;
  for (const Function &F : M) {
    // No code is made of what was imported to be inlined.
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
      {"PGOInstrumentationGen", "a profile is to be written"},
      {"SampleProfileProbePass", "there are to be pseudo probes"},
      {"PGOInstrumentationUse", "a profile is to be used"},
      {"SampleProfileLoaderPass", "a profile is to be used"},
      {"MemProfUsePass", "a profile is to be used"},
  };
  // PassBuilder keeps its PGOOptions to itself, and builds by them.
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
  // These calls are put in before functions are inlined.
  if (any_of(M, [](const Function &F) {
        return F.hasFnAttribute("instrument-function-entry") ||
               F.hasFnAttribute("instrument-function-exit");
      }))
    return "functions are to say that they are called";
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
    return "sanitizers add code behind it";
  if (M.getFunction("llvm.instrprof.increment") ||
      M.getNamedMetadata("llvm.gcov"))
    return "counters are added behind it";
  return "";
}

} // namespace MLBridge
