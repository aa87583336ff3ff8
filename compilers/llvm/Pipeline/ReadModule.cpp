//===- ReadModule.cpp - Reads modules that a trainer names ----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Adds the module's name to LLVM's messages.
///
//===----------------------------------------------------------------------===//

#include "Pipeline/ReadModule.h"

#include "Support/ReadFile.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace MLBridge {

Expected<std::unique_ptr<MemoryBuffer>> readModuleFile(StringRef Path) {
  // Reject files that would exhaust a compiler's memory.
  constexpr std::uint64_t MaxBytes = std::uint64_t(4) << 30;
  auto File = readFile(Path, MaxBytes);
  if (!File) {
    const Error E = File.takeError();
    return Error(
        E.code(),
        ("module '" + Path + "': cannot be read: " + E.message()).str());
  }
  return File;
}

Expected<std::unique_ptr<Module>> parseModule(MemoryBufferRef IR,
                                              LLVMContext &Context) {
  SMDiagnostic Why;
  std::unique_ptr<Module> M = parseIR(IR, Why, Context);
  std::string Problem;
  if (M) {
    raw_string_ostream OS(Problem);
    if (!verifyModule(*M, &OS))
      Problem.clear();
  } else {
    Problem = Why.getMessage().str();
  }
  if (!M || !Problem.empty())
    return Error(ErrorCode::Malformed,
                 ("module '" + IR.getBufferIdentifier() +
                  "': expected LLVM IR: " + StringRef(Problem).trim())
                     .str());
  return M;
}

} // namespace MLBridge
