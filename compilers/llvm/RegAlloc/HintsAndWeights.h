//===- HintsAndWeights.h - Greedy's hints and weights -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// HintsAndWeights undoes the computation of spill weights and hints. Greedy
/// computes both again, and adds its hints to existing hints. Without this
/// class, greedy would not make the same code as in the stock compiler.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_HINTSANDWEIGHTS_H
#define MLBRIDGE_LLVM_REGALLOC_HINTSANDWEIGHTS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/CodeGen/Register.h"

namespace MLBridge {

struct AllocationContext;

class HintsAndWeights {
public:
  /// Saves the hint and the spill weight of each virtual register. \p Context
  /// must outlive this object.
  explicit HintsAndWeights(const AllocationContext &Context);
  void restore() const;

private:
  struct Saved {
    llvm::Register Reg;
    float Weight;
    /// The kind of the first hint. 0 means a register.
    unsigned Kind;
    llvm::SmallVector<llvm::Register, 4> Hints;
  };

  const AllocationContext &C;
  llvm::SmallVector<Saved, 0> Registers;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_HINTSANDWEIGHTS_H
