//===- Transform.cpp - Tiles, reorders and unrolls loop nests -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Applies choices with MLIR's own transformations.
///
//===----------------------------------------------------------------------===//

#include "Transform.h"

#include "mlir/Dialect/Affine/Analysis/LoopAnalysis.h"
#include "mlir/Dialect/Affine/LoopUtils.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::affine;

namespace MLBridge {

LogicalResult applyToAffine(ArrayRef<AffineForOp> Loops,
                            const TilingChoice &Choice) {
  const unsigned N = Loops.size();
  SmallVector<unsigned, 8> PlaceOf(N), Tiles(N);
  SmallVector<AffineForOp, 8> Nest(N);
  for (auto [Place, Loop] : enumerate(Choice.Order)) {
    PlaceOf[Loop] = Place;
    Nest[Place] = Loops[Loop];
    // A loop that is not tiled becomes one tile.
    const std::int64_t Tile = Choice.Tiles[Loop];
    Tiles[Place] = Tile ? Tile : std::numeric_limits<std::int32_t>::max();
    if (std::optional<uint64_t> Trips = getConstantTripCount(Loops[Loop]))
      Tiles[Place] = std::clamp<uint64_t>(*Trips, 1, Tiles[Place]);
  }
  permuteLoops(Loops, PlaceOf);
  SmallVector<AffineForOp, 16> Tiled(Nest.begin(), Nest.end());
  if (any_of(Choice.Tiles, [](std::int64_t Tile) { return Tile != 0; })) {
    Tiled.clear();
    if (failed(tilePerfectlyNested(Nest, Tiles, &Tiled)))
      return failure();
  }
  if (Choice.Unroll > 1 &&
      failed(loopUnrollJamByFactor(Tiled[Tiled.size() - 2], Choice.Unroll)))
    return failure();
  // Remove the loops over single tiles.
  for (AffineForOp Loop : ArrayRef(Tiled).drop_back(N))
    (void)promoteIfSingleIteration(Loop);
  return success();
}

/// Tiles an operation on tensors.
static LogicalResult applyToTensors(IRRewriter &Rewriter, linalg::LinalgOp Op,
                                    const TilingChoice &Choice) {
  auto Generic = dyn_cast<linalg::GenericOp>(Op.getOperation());
  if (!is_sorted(Choice.Order)) {
    if (!Generic) {
      FailureOr<linalg::GenericOp> Made =
          linalg::generalizeNamedOp(Rewriter, Op);
      if (failed(Made))
        return failure();
      Generic = *Made;
    }
    if (failed(linalg::interchangeGenericOp(Rewriter, Generic, Choice.Order)))
      return failure();
    Op = Generic;
  }
  SmallVector<OpFoldResult> Sizes;
  for (unsigned Loop : Choice.Order)
    Sizes.push_back(Rewriter.getIndexAttr(Choice.Tiles[Loop]));
  scf::SCFTilingOptions Options;
  Options.setTileSizes(Sizes);
  Rewriter.setInsertionPoint(Op);
  FailureOr<scf::SCFTilingResult> Result = scf::tileUsingSCF(
      Rewriter, cast<TilingInterface>(Op.getOperation()), Options);
  if (failed(Result))
    return failure();
  Rewriter.replaceOp(Op, Result->replacements);
  return success();
}

LogicalResult applyToLinalg(linalg::LinalgOp Op, const TilingChoice &Choice) {
  IRRewriter Rewriter(Op.getContext());
  Rewriter.setInsertionPoint(Op);
  if (Op.hasPureTensorSemantics())
    return applyToTensors(Rewriter, Op, Choice);
  FailureOr<linalg::LinalgLoops> Made =
      linalg::linalgOpToAffineLoops(Rewriter, Op);
  if (failed(Made))
    return failure();
  Rewriter.eraseOp(Op);
  SmallVector<AffineForOp, 8> Loops;
  for (Operation *Loop : *Made)
    Loops.push_back(cast<AffineForOp>(Loop));
  return applyToAffine(Loops, Choice);
}

} // namespace MLBridge
