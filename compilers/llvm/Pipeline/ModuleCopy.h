//===- ModuleCopy.h - A copy of a module in its own context -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Copies modules through bitcode with the order of each value's uses. Passes
/// and the code generator depend on that order, which a clone of a module does
/// not preserve.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PIPELINE_MODULECOPY_H
#define MLBRIDGE_LLVM_PIPELINE_MODULECOPY_H

#include "Pipeline/ErrorCollector.h"

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/LLVMContext.h"

#include <memory>
#include <string>

namespace llvm {
class Module;
} // namespace llvm

namespace MLBridge {

/// Returns bitcode with the use order.
std::string bitcodeOf(const llvm::Module &M);

/// Reads the result of bitcodeOf(). \p Name is the name of the new module.
/// Returns Malformed if LLVM cannot read it.
Expected<std::unique_ptr<llvm::Module>> readBitcode(llvm::StringRef Bitcode,
                                                    llvm::StringRef Name,
                                                    llvm::LLVMContext &Context);

/// A copy of a module in a context of its own. Errors of passes that run on the
/// copy are stored, and other diagnostics are dropped.
class ModuleCopy {
public:
  /// Makes a copy from the result of bitcodeOf(), as readBitcode() does.
  static Expected<std::unique_ptr<ModuleCopy>> read(llvm::StringRef Bitcode,
                                                    llvm::StringRef Name);
  ModuleCopy(const ModuleCopy &) = delete;
  ModuleCopy &operator=(const ModuleCopy &) = delete;
  ~ModuleCopy();

  llvm::Module &module() { return *M; }
  /// Returns the errors that were reported since the last call.
  std::string takeErrors() { return Errors->take(); }

private:
  ModuleCopy();

  llvm::LLVMContext Context;
  /// Owned by the context.
  ErrorCollector *Errors;
  std::unique_ptr<llvm::Module> M;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PIPELINE_MODULECOPY_H
