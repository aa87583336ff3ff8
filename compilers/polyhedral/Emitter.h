//===- Emitter.h - C code of kernels ----------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Prints C functions that run kernels, and C programs that compare such
/// functions.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_POLYHEDRAL_EMITTER_H
#define MLBRIDGE_POLYHEDRAL_EMITTER_H

#include "Kernel.h"

namespace MLBridge::polyhedral {

/// Returns the C function \p Name, which runs the kernel in the order of
/// \p Loops. Its parameters are the kernel's arrays.
std::string functionOf(const Kernel &K, const isl::ast_node &Loops,
                       const std::string &Name);

/// Returns the definitions that the results of functionOf() need.
std::string preamble(const Kernel &K);

/// Returns a program that runs \p Functions alternately, and compares their
/// results with the results of the first function, bit for bit. The program
/// prints a line for each function: "same" or "differs", and the CPU time of
/// each of \p Rounds runs in nanoseconds. A function runs only once if it takes
/// more than \p Slow times as long as the first function.
std::string programOf(const Kernel &K,
                      const std::vector<std::string> &Functions, int Rounds,
                      double Slow);

/// Returns the name of a program's function \p Number.
std::string variantName(std::size_t Number);

} // namespace MLBridge::polyhedral

#endif // MLBRIDGE_POLYHEDRAL_EMITTER_H
