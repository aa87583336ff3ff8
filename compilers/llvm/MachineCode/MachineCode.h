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

#ifndef MLBRIDGE_LLVM_MACHINECODE_MACHINECODE_H
#define MLBRIDGE_LLVM_MACHINECODE_MACHINECODE_H

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <memory>

namespace llvm {
class Function;
class Module;
class TargetMachine;
class Triple;
namespace object {
class ObjectFile;
} // namespace object
} // namespace llvm

namespace MLBridge {

/// Creates the target machine for \p M. The target machine has the module's
/// triple and code model, and the settings that -O2, -Os and -Oz have in
/// common. It generates position-independent code if the module requires it.
/// CPU and features are not set, because they are attributes of functions.
/// Returns Unsupported in these cases:
///
/// - This LLVM lacks the target.
/// - LLVM does not support the module's code model for the target.
/// - The module's data layout is not the target's.
Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const llvm::Module &M);

using ObjectCode = llvm::SmallVector<char, 0>;

/// Generates the object file of \p M. The code generator modifies \p M. The
/// object file depends on the order of each value's uses, which a clone of a
/// module does not preserve. Therefore, pass a module that was written and read
/// as bitcode with its use order. Diagnostics go to the module's context.
/// Returns the errors of createTargetMachine(), or Unsupported if the target
/// does not support object files.
///
/// If \p MapsBlocks is true and mapFrequencies() has been called, the object
/// file also contains the addresses and frequencies of basic blocks, for
/// cyclesOfFunction() and weightedCycles().
Expected<ObjectCode> emitObject(llvm::Module &M, bool MapsBlocks = false);

/// Sets an option of LLVM in this process. Returns false if it has been given
/// before, and then does not change it. Returns Unsupported if this LLVM does
/// not have it.
Expected<bool> setLLVMOption(llvm::StringRef Name, llvm::StringRef Value);

/// Restores the default of an option that setLLVMOption() has set.
void resetLLVMOption(llvm::StringRef Name);

/// Sets LLVM's option -pgo-analysis-map=bb-freq. Returns Unsupported if this
/// program does not have it.
Error mapFrequencies();

/// Parses \p Object. The result refers to \p Object. Returns Unsupported if
/// LLVM cannot read it.
Expected<std::unique_ptr<llvm::object::ObjectFile>>
readObject(const ObjectCode &Object);

/// Returns the total size of all code sections, in bytes.
Expected<std::uint64_t> textSize(const ObjectCode &Object);

/// Returns the sum of llvm-mca's cycles over all functions. llvm-mca does not
/// model loops and branches, so each function runs once from start to end. Each
/// call counts as 10 cycles. The sum is therefore only a rough substitute for
/// execution time. \p CPU is a name that -mcpu accepts. Returns Unsupported if
/// LLVM has no scheduling model for the CPU.
Expected<double> machineCycles(const ObjectCode &Object,
                               const llvm::Triple &Target, llvm::StringRef CPU);

/// Returns the estimated cycles of one run of \p F. \p Object comes from
/// emitObject() with \p MapsBlocks. Each block is simulated as machineCycles()
/// simulates a function, except that loads wait for stores. The block's cycles
/// are multiplied by LLVM's estimate of how often the block runs in one run of
/// \p F. The function's attribute `target-cpu` selects the CPU. Returns the
/// error of checkCyclesOf(), or Unsupported if \p Object lacks the addresses of
/// the blocks.
Expected<double> cyclesOfFunction(const ObjectCode &Object,
                                  const llvm::Function &F);

/// Returns the estimated number of runs of each function of \p M, by symbol. A
/// function that code outside \p M may call has 1 run, and each call in \p M
/// adds the estimated number of its executions. Recursive calls add nothing,
/// but functions that call each other have equal numbers. The maximum is 1e9.
/// Call this function before emitObject(), which modifies \p M.
llvm::StringMap<double> functionRuns(llvm::Module &M);

/// Returns the estimated cycles of all runs of all functions. \p Object comes
/// from emitObject() with \p MapsBlocks, and \p Runs from functionRuns(). Each
/// run counts as in cyclesOfFunction(). \p CPU and the errors are as in
/// machineCycles().
Expected<double> weightedCycles(const ObjectCode &Object,
                                const llvm::Triple &Target, llvm::StringRef CPU,
                                const llvm::StringMap<double> &Runs);

/// Returns Unsupported if LLVM has no scheduling model for the CPU of \p F.
Error checkCyclesOf(const llvm::Function &F);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_MACHINECODE_MACHINECODE_H
