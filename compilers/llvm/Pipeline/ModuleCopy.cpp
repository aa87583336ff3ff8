//===- ModuleCopy.cpp - A copy of a module in its own context -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes and reads the bitcode.
///
//===----------------------------------------------------------------------===//

#include "Pipeline/ModuleCopy.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace MLBridge {

std::string bitcodeOf(const Module &M) {
  std::string Bitcode;
  raw_string_ostream OS(Bitcode);
  WriteBitcodeToFile(M, OS, /*ShouldPreserveUseListOrder=*/true);
  return Bitcode;
}

Expected<std::unique_ptr<Module>> readBitcode(StringRef Bitcode, StringRef Name,
                                              LLVMContext &Context) {
  auto Read = parseBitcodeFile(MemoryBufferRef(Bitcode, Name), Context);
  if (!Read)
    return Error(ErrorCode::Malformed,
                 (Name + ": LLVM cannot read the bitcode that it wrote: " +
                  toString(Read.takeError()))
                     .str());
  return std::move(*Read);
}

ModuleCopy::ModuleCopy() {
  auto Collector = std::make_unique<ErrorCollector>();
  Errors = Collector.get();
  Context.setDiagnosticHandler(std::move(Collector));
}

ModuleCopy::~ModuleCopy() = default;

Expected<std::unique_ptr<ModuleCopy>> ModuleCopy::read(StringRef Bitcode,
                                                       StringRef Name) {
  std::unique_ptr<ModuleCopy> Result(new ModuleCopy());
  Expected<std::unique_ptr<Module>> M =
      readBitcode(Bitcode, Name, Result->Context);
  if (!M)
    return M.takeError();
  Result->M = std::move(*M);
  return Result;
}

} // namespace MLBridge
