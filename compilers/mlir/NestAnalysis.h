//===- NestAnalysis.h - Describes loop nests of MLIR ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Declares the functions that describe affine loop nests and linalg operations
/// as a LoopNest.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_MLIR_NESTANALYSIS_H
#define MLBRIDGE_MLIR_NESTANALYSIS_H

#include "LoopNest.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace MLBridge {

/// Describes the perfect nest \p Loops, outermost first. Returns nullopt if the
/// nest never runs or cannot be reordered safely: if a bound depends on another
/// loop, a loop carries values, the body does more than affine accesses and
/// arithmetic, the body has more than 128 accesses, the dependences are
/// unknown, or two values may name the same memory. Like MLIR's own affine
/// passes, this analysis assumes that the memrefs among a function's arguments
/// do not overlap.
std::optional<LoopNest>
describeAffine(llvm::ArrayRef<mlir::affine::AffineForOp> Loops);

/// Describes the loops that \p Op stands for. Returns nullopt if its operands
/// include both tensors and buffers, if buffers may overlap or have unknown
/// sizes, if its body has side effects, or if \p Op never runs.
std::optional<LoopNest> describeLinalg(mlir::linalg::LinalgOp Op);

} // namespace MLBridge

#endif // MLBRIDGE_MLIR_NESTANALYSIS_H
