//===- Transform.h - Tiles, reorders and unrolls loop nests -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Declares the functions that apply a legal choice.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_MLIR_TRANSFORM_H
#define MLBRIDGE_MLIR_TRANSFORM_H

#include "LoopNest.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace MLBridge {

/// Applies \p Choice to the perfect nest \p Loops. If this fails, the nest
/// still computes the same results.
mlir::LogicalResult
applyToAffine(llvm::ArrayRef<mlir::affine::AffineForOp> Loops,
              const TilingChoice &Choice);

/// Applies \p Choice to \p Op. If \p Op works on buffers, it becomes a nest of
/// affine loops. If it works on tensors, it becomes loops around a smaller
/// operation. If this function fails, \p Op is unchanged.
mlir::LogicalResult applyToLinalg(mlir::linalg::LinalgOp Op,
                                  const TilingChoice &Choice);

} // namespace MLBridge

#endif // MLBRIDGE_MLIR_TRANSFORM_H
