//===- MachineCode.h - What a module becomes --------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From a module to the machine code that clang would make of it, in memory,
/// and what is measured of that.
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

/// The target machine for \p M: its triple, its code model, position
/// independent if it says so, and the code generator's settings of -Os and -Oz.
/// (CPU and features are attributes of functions.) Unsupported where this LLVM
/// has no such target, or not this code model for it, or where \p M has another
/// data layout than it.
Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const llvm::Module &M);

/// An object file.
using ObjectCode = llvm::SmallVector<char, 0>;

/// Makes the object of \p M, of which the code generator leaves something else.
/// (It goes by the order of uses, so what it is given in the place of a module
/// is no clone, but what was written and read with that order.) What it reports
/// goes to the module's context. Errors: those of createTargetMachine();
/// Unsupported where the target has no object files.
Expected<ObjectCode> emitObject(llvm::Module &M);

/// The size of all sections that hold code, in bytes.
Expected<std::uint64_t> textSize(const ObjectCode &Object);

/// How many cycles llvm-mca gives the code of all functions, one after the
/// other and straight through: it knows no loops and no branches, and each call
/// is charged 10. \p CPU as for -mcpu. A proxy for time, with all that this
/// means. Unsupported where LLVM has no scheduling model of the CPU.
Expected<double> machineCycles(const ObjectCode &Object,
                               const llvm::Triple &Target, llvm::StringRef CPU);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_MACHINECODE_H
