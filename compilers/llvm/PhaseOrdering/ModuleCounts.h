//===- ModuleCounts.h - Counts the parts of a module ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModuleCounts counts parts of a module that a histogram of instructions does
/// not contain, such as blocks and calls.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_MODULECOUNTS_H
#define MLBRIDGE_LLVM_PHASEORDERING_MODULECOUNTS_H

#include <array>
#include <cstdint>

namespace llvm {
class Module;
} // namespace llvm

namespace MLBridge {

struct ModuleCounts {
  /// The counts, in the order of values(). Only reachable blocks and their
  /// contents are counted. Debug intrinsics are not counted.
  enum Kind : unsigned {
    Functions,         ///< Functions with a body.
    InternalFunctions, ///< Functions with a body and local linkage.
    Blocks,
    Joins,            ///< Blocks with more than one predecessor.
    Branches,         ///< Blocks with more than one successor.
    ConstantIntegers, ///< Constant integers that are operands.
    IndirectCalls,
    IntrinsicCalls,
    InternalCalls, ///< Calls of functions with a body in this module.
    ExternalCalls, ///< Calls of other functions.
    Instructions,
    Globals, ///< Variables with an initializer.
  };
  static constexpr unsigned NumKinds = Globals + 1;

  static ModuleCounts of(const llvm::Module &M);

  float operator[](Kind What) const { return Values[What]; }
  const std::array<float, NumKinds> &values() const { return Values; }
  /// The exact number of instructions, which values() has only as a float.
  std::uint64_t instructions() const { return NumInstructions; }

private:
  std::array<float, NumKinds> Values{};
  std::uint64_t NumInstructions = 0;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_MODULECOUNTS_H
