//===- ModuleCounts.h - What a module is made of, in numbers ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModuleCounts: what a histogram of instructions does not tell of a module.
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
  /// What is counted, in the order of values(). Blocks, and all that is in
  /// them, are those that can be reached; debug intrinsics do not count.
  enum Kind : unsigned {
    Functions,         ///< With a body.
    InternalFunctions, ///< Of those, the ones that only this module can call.
    Blocks,
    Joins,            ///< Blocks with more than one predecessor.
    Branches,         ///< Blocks with more than one successor.
    ConstantIntegers, ///< Operands of instructions.
    IndirectCalls,
    IntrinsicCalls,
    InternalCalls, ///< Of functions with a body here.
    ExternalCalls, ///< Of other functions.
    Instructions,
    Globals, ///< Variables with an initializer.
  };
  static constexpr unsigned NumKinds = Globals + 1;

  static ModuleCounts of(const llvm::Module &M);

  float operator[](Kind What) const { return Values[What]; }
  const std::array<float, NumKinds> &values() const { return Values; }
  /// values()[Instructions], exactly.
  std::uint64_t instructions() const { return NumInstructions; }

private:
  std::array<float, NumKinds> Values{};
  std::uint64_t NumInstructions = 0;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_MODULECOUNTS_H
