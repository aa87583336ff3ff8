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

#include "llvm/IR/Module.h"

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

} // namespace MLBridge
