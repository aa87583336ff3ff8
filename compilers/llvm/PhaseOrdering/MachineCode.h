//===- MachineCode.h - Generates and measures machine code ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Generates the machine code that clang would generate for a module, in
/// memory, and measures it.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_MACHINECODE_H
#define MLBRIDGE_LLVM_PHASEORDERING_MACHINECODE_H

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <memory>

namespace llvm {
class Module;
class TargetMachine;
class Triple;
} // namespace llvm

namespace MLBridge {

/// Creates the target machine for \p M: with its triple, its code model,
/// position-independent code if the module requires it, and the code
/// generator's settings of -Os and -Oz. (CPU and features are attributes of
/// functions.) Unsupported if this LLVM lacks the target or does not support
/// the code model for it, or if \p M has another data layout.
Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const llvm::Module &M);

/// An object file.
using ObjectCode = llvm::SmallVector<char, 0>;

/// Generates the object file of \p M. The code generator modifies \p M. (Its
/// results depend on the order of uses, so pass a module that was written and
/// read with that order, not a clone.) Diagnostics go to the module's context.
/// Errors: those of createTargetMachine(); Unsupported if the target does not
/// support object files.
Expected<ObjectCode> emitObject(llvm::Module &M);

/// The total size of all code sections, in bytes.
Expected<std::uint64_t> textSize(const ObjectCode &Object);

/// The sum of llvm-mca's cycles over all functions, each executed once from
/// start to end: llvm-mca knows neither loops nor branches. Each call costs 10
/// cycles. \p CPU is as for -mcpu. Only a proxy for execution time. Unsupported
/// if LLVM has no scheduling model for the CPU.
Expected<double> machineCycles(const ObjectCode &Object,
                               const llvm::Triple &Target, llvm::StringRef CPU);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_MACHINECODE_H
