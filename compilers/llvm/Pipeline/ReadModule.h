//===- ReadModule.h - Reads modules that a trainer names --------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads and parses a module. The messages of errors name the module.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PIPELINE_READMODULE_H
#define MLBRIDGE_LLVM_PIPELINE_READMODULE_H

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace MLBridge {

/// Reads the file at \p Path. Returns the errors of readFile().
Expected<std::unique_ptr<llvm::MemoryBuffer>>
readModuleFile(llvm::StringRef Path);

/// Parses bitcode or textual IR. Returns Malformed if LLVM cannot parse it, or
/// if LLVM's verifier rejects it.
Expected<std::unique_ptr<llvm::Module>> parseModule(llvm::MemoryBufferRef IR,
                                                    llvm::LLVMContext &Context);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PIPELINE_READMODULE_H
