//===- LoopNest.h - What a model sees of a loop nest ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines LoopNest, which describes an affine loop nest or a linalg operation,
/// and TilingChoice, one way to change it.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_MLIR_LOOPNEST_H
#define MLBRIDGE_MLIR_LOOPNEST_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace MLBridge {

/// Tile sizes, the order of the loops, and an unroll factor. The default leaves
/// the nest as it is.
struct TilingChoice {
  /// One tile size per loop, from the outermost to the innermost loop of the
  /// source. 0 leaves the loop untiled.
  llvm::SmallVector<std::int64_t, 8> Tiles;
  /// The new order: the numbers of the source's loops, outermost first. It
  /// orders the loops over tiles, and the loops in a tile.
  llvm::SmallVector<unsigned, 8> Order;
  /// The number of iterations of the second-innermost loop that become one body
  /// (unroll and jam). 1 does not unroll.
  std::int64_t Unroll = 1;

  static TilingChoice leave(unsigned NumLoops);
  bool isLeave() const;
};

/// The distance of a dependence along one loop, as far as it is known.
struct Distance {
  static constexpr std::int64_t Unbounded =
      std::numeric_limits<std::int64_t>::min();
  /// The lower bound of the distance.
  std::int64_t Low = Unbounded;
  /// True if the distance is 0.
  bool IsZero = false;
};

/// An access to memory in the innermost body.
struct Access {
  /// Accesses with the same number access the same memory.
  unsigned Memory = 0;
  /// The distance in bytes between two iterations of each loop.
  llvm::SmallVector<std::int64_t, 8> Strides;
  std::int64_t ElementBytes = 0;
  bool IsWrite = false;
};

/// The operations of one iteration of the innermost body.
struct Operations {
  std::int32_t Additions = 0; ///< Additions, subtractions and comparisons.
  std::int32_t Multiplications = 0; ///< Multiplications.
  std::int32_t Divisions = 0;       ///< Divisions, and functions of `math`.
  std::int32_t Others = 0;
};

/// A perfect loop nest.
struct LoopNest {
  static constexpr std::int64_t Unknown = -1;
  static constexpr std::int64_t MaxUnroll = 16;

  /// The trip count of each loop, or Unknown. The outermost loop is first.
  llvm::SmallVector<std::int64_t, 8> TripCounts;
  llvm::SmallVector<Access, 8> Accesses;
  /// For each dependence, its distance along each loop.
  llvm::SmallVector<llvm::SmallVector<Distance, 8>, 8> Dependences;
  Operations Counts;
  /// True if the transformed nest consists of loops, which can be unrolled.
  /// False for a linalg operation on tensors, which stays an operation.
  bool CanUnroll = true;

  unsigned size() const { return TripCounts.size(); }
  /// True if no dependence is carried by this loop.
  bool isParallel(unsigned Loop) const;
  /// True if the loops may be in this order.
  bool isLegalOrder(llvm::ArrayRef<unsigned> Order) const;
  /// True if this loop may be tiled.
  bool isTileable(unsigned Loop) const;
  /// Returns why \p Choice would change results or cannot be applied, or
  /// nullopt if it is legal.
  std::optional<std::string> illegal(const TilingChoice &Choice) const;
};

/// Returns the finite menu of legal choices for \p Nest. The first one leaves
/// the nest as it is.
llvm::SmallVector<TilingChoice, 0> legalChoices(const LoopNest &Nest);

} // namespace MLBridge

#endif // MLBRIDGE_MLIR_LOOPNEST_H
