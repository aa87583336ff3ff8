//===- LoopNest.cpp - Legal choices for a loop nest -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Checks choices against dependences and lists the legal ones.
///
//===----------------------------------------------------------------------===//

#include "LoopNest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace llvm;

namespace MLBridge {

TilingChoice TilingChoice::leave(unsigned NumLoops) {
  TilingChoice Choice;
  Choice.Tiles.assign(NumLoops, 0);
  Choice.Order.resize(NumLoops);
  std::iota(Choice.Order.begin(), Choice.Order.end(), 0);
  return Choice;
}

bool TilingChoice::isLeave() const {
  return Unroll == 1 && is_sorted(Order) &&
         all_of(Tiles, [](std::int64_t Tile) { return Tile == 0; });
}

bool LoopNest::isParallel(unsigned Loop) const {
  return all_of(Dependences, [Loop](ArrayRef<Distance> Distances) {
    // An outer loop carries the dependence, or the distance is 0.
    return Distances[Loop].IsZero ||
           any_of(Distances.take_front(Loop),
                  [](const Distance &Outer) { return Outer.Low > 0; });
  });
}

/// True if the first distance in this order that is not 0 is positive.
static bool isPositive(ArrayRef<Distance> Distances, ArrayRef<unsigned> Order) {
  for (unsigned Loop : Order) {
    if (Distances[Loop].Low > 0)
      return true;
    if (Distances[Loop].Low < 0)
      return false;
  }
  return true;
}

bool LoopNest::isLegalOrder(ArrayRef<unsigned> Order) const {
  return all_of(Dependences, [Order](ArrayRef<Distance> Distances) {
    return isPositive(Distances, Order);
  });
}

bool LoopNest::isTileable(unsigned Loop) const {
  return all_of(Dependences, [Loop](ArrayRef<Distance> Distances) {
    return Distances[Loop].Low >= 0;
  });
}

/// Returns the reason why the loop around the innermost one cannot be unrolled,
/// or nullopt if it can.
static std::optional<std::string> illegalUnroll(const LoopNest &Nest,
                                                const TilingChoice &Choice) {
  if (!Nest.CanUnroll || Nest.size() < 2)
    return "no loop can be unrolled";
  const unsigned Outer = Choice.Order[Nest.size() - 2];
  const std::int64_t Trips = Nest.TripCounts[Outer];
  const std::int64_t Tile = Choice.Tiles[Outer];
  const bool IsTiled = Tile != 0 && Tile < Trips;
  if (Trips == LoopNest::Unknown || (IsTiled && Trips % Tile != 0) ||
      (IsTiled ? Tile : Trips) % Choice.Unroll != 0)
    return formatv("the unroll factor {0} does not divide the iterations of "
                   "loop {1}",
                   Choice.Unroll, Outer)
        .str();
  // The iterations of an unrolled and jammed loop run as if this loop were the
  // innermost one.
  SmallVector<unsigned, 8> Swapped(Choice.Order);
  std::swap(Swapped.back(), Swapped[Nest.size() - 2]);
  if (!Nest.isLegalOrder(Swapped))
    return formatv("a dependence forbids unrolling of loop {0}", Outer).str();
  return std::nullopt;
}

std::optional<std::string> LoopNest::illegal(const TilingChoice &Choice) const {
  SmallBitVector Seen(size());
  for (unsigned Loop : Choice.Order) {
    if (Loop >= size() || Seen[Loop])
      return "the order is not a permutation of the loops";
    Seen.set(Loop);
  }
  for (auto [Loop, Tile] : enumerate(Choice.Tiles)) {
    if (Tile < 0 || Tile > std::numeric_limits<std::int32_t>::max())
      return formatv("the tile size {0} of loop {1} is not from 0 to 2^31-1",
                     Tile, Loop)
          .str();
    if (Tile != 0 && !isTileable(Loop))
      return formatv("a dependence forbids tiling of loop {0}", Loop).str();
  }
  if (!isLegalOrder(Choice.Order))
    return "a dependence forbids this order of the loops";
  if (Choice.Unroll < 1 || Choice.Unroll > MaxUnroll)
    return formatv("the unroll factor {0} is not from 1 to {1}", Choice.Unroll,
                   MaxUnroll)
        .str();
  return Choice.Unroll == 1 ? std::nullopt : illegalUnroll(*this, Choice);
}

static constexpr unsigned MaxChoices = 160;
static constexpr std::int64_t TileSizes[] = {8, 32, 128};
static constexpr std::int64_t UnrollFactors[] = {1, 4};

/// Returns the legal orders to try. In nests of up to three loops, each loop
/// becomes the innermost one. In deeper nests, only a loop along which an
/// access is contiguous becomes the innermost one. For each innermost loop,
/// each other loop becomes the loop around it. The remaining loops keep their
/// order.
static SmallVector<SmallVector<unsigned, 8>, 0> orders(const LoopNest &Nest) {
  const TilingChoice Leave = TilingChoice::leave(Nest.size());
  SmallVector<SmallVector<unsigned, 8>, 0> Found{Leave.Order};
  auto AddIfLegal = [&](ArrayRef<unsigned> Last) {
    SmallVector<unsigned, 8> Order;
    for (unsigned Loop : Leave.Order)
      if (!is_contained(Last, Loop))
        Order.push_back(Loop);
    Order.append(Last.begin(), Last.end());
    if (!is_contained(Found, Order) && Nest.isLegalOrder(Order))
      Found.push_back(Order);
  };
  for (unsigned Inner : reverse(Leave.Order)) {
    const bool IsContiguous = any_of(Nest.Accesses, [&](const Access &One) {
      return std::abs(One.Strides[Inner]) == One.ElementBytes;
    });
    if (Nest.TripCounts[Inner] == 1 || (Nest.size() > 3 && !IsContiguous))
      continue;
    AddIfLegal({Inner});
    for (unsigned Outer : reverse(Leave.Order))
      if (Outer != Inner && Nest.TripCounts[Outer] != 1)
        AddIfLegal({Outer, Inner});
  }
  return Found;
}

/// Returns the tile sizes to try: none, one size for all loops, and one size
/// for all loops but the innermost one.
static SmallVector<SmallVector<std::int64_t, 8>, 0>
tilings(const LoopNest &Nest, ArrayRef<unsigned> Order) {
  SmallVector<SmallVector<std::int64_t, 8>, 0> Found;
  Found.emplace_back(Nest.size(), 0);
  for (std::int64_t Size : TileSizes)
    for (bool TilesInnermost : {true, false}) {
      SmallVector<std::int64_t, 8> Tiles(Nest.size(), 0);
      for (unsigned Loop : TilesInnermost ? Order : Order.drop_back()) {
        const std::int64_t Trips = Nest.TripCounts[Loop];
        if ((Trips == LoopNest::Unknown || Trips > Size) &&
            Nest.isTileable(Loop))
          Tiles[Loop] = Size;
      }
      if (!is_contained(Found, Tiles))
        Found.push_back(std::move(Tiles));
    }
  return Found;
}

SmallVector<TilingChoice, 0> legalChoices(const LoopNest &Nest) {
  SmallVector<TilingChoice, 0> Found{TilingChoice::leave(Nest.size())};
  for (const auto &Order : orders(Nest))
    for (const auto &Tiles : tilings(Nest, Order))
      for (std::int64_t Unroll : UnrollFactors) {
        TilingChoice Choice{Tiles, Order, Unroll};
        if (Found.size() < MaxChoices && !Choice.isLeave() &&
            !Nest.illegal(Choice))
          Found.push_back(std::move(Choice));
      }
  return Found;
}

} // namespace MLBridge
