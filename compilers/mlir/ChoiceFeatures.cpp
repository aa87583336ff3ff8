//===- ChoiceFeatures.cpp - The tensors of a request ----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Estimates the effect of each choice on vectors, registers and caches.
///
//===----------------------------------------------------------------------===//

#include "ChoiceFeatures.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

using namespace llvm;

namespace MLBridge {

namespace {

constexpr double LineBytes = 64, PageBytes = 4096;
/// The capacities for which misses are estimated: the bytes of L1, of a part of
/// L2 and of the whole L2, and the pages that the TLB reaches.
constexpr double CacheBytes[] = {32e3, 256e3, 1.5e6};
constexpr double TLBPages = 64;
/// Replaces an unknown trip count.
constexpr double TypicalTrips = 256;

/// A loop of the nest that a choice makes from the source nest.
struct NewLoop {
  unsigned Source; ///< The number of the loop in the source nest.
  double Trips;
  double Step; ///< Iterations of the source loop per iteration of this loop.
};

/// The nest that a choice makes, and the estimates for it.
class NewNest {
public:
  NewNest(const LoopNest &Nest, const TilingChoice &Choice);

  /// Appends NumColumns numbers to \p Row.
  void describe(SmallVectorImpl<float> &Row) const;

private:
  /// Returns how many units of \p Unit bytes the innermost \p Depth loops touch
  /// through one access.
  double units(const Access &One, size_t Depth, double Unit) const;
  /// Returns, for each number of innermost loops, how many units of \p Unit
  /// bytes these loops touch in all memories.
  SmallVector<double, 16> footprints(double Unit) const;
  /// Returns how many units are moved into a cache of \p Capacity units. \p
  /// Footprints is the result of footprints().
  double moved(double Capacity, ArrayRef<double> Footprints) const;
  void describeLoop(unsigned Loop, double Trips,
                    SmallVectorImpl<float> &Row) const;
  void describeRegisters(SmallVectorImpl<float> &Row) const;
  double stride(const Access &One, unsigned Loop) const {
    return std::abs(double(One.Strides[Loop]));
  }

  const LoopNest &Nest;
  const TilingChoice &Choice;
  SmallVector<NewLoop, 16> Loops;          ///< The outermost loop is first.
  SmallVector<const Access *, 8> Memories; ///< One access for each memory.
  unsigned Inner, Around; ///< The innermost loop, and the loop around it.
  double InnerTrips = 1, AroundTrips = 1, Iterations = 1;
};

} // namespace

static double log2of(double Value) { return std::log2(std::max(Value, 1e-6)); }

NewNest::NewNest(const LoopNest &Nest, const TilingChoice &Choice)
    : Nest(Nest), Choice(Choice), Inner(Choice.Order.back()),
      Around(Choice.Order[Nest.size() < 2 ? 0 : Nest.size() - 2]) {
  auto TripsOf = [&](unsigned Loop) {
    const std::int64_t Trips = Nest.TripCounts[Loop];
    return Trips == LoopNest::Unknown ? TypicalTrips : double(Trips);
  };
  for (unsigned Loop : Choice.Order)
    if (const double Tile = Choice.Tiles[Loop];
        Tile > 0 && Tile < TripsOf(Loop))
      Loops.push_back({Loop, std::ceil(TripsOf(Loop) / Tile), Tile});
  for (unsigned Loop : Choice.Order) {
    const double Trips = TripsOf(Loop), Tile = Choice.Tiles[Loop];
    const double Points = Tile > 0 ? std::min(Tile, Trips) : Trips;
    Iterations *= Trips;
    Loops.push_back({Loop, Points, 1});
  }
  InnerTrips = Loops.back().Trips;
  if (Nest.size() > 1)
    AroundTrips = Loops[Loops.size() - 2].Trips;
  // Accesses that differ only by a constant touch the same memory.
  for (const Access &One : Nest.Accesses)
    if (none_of(Memories, [&](const Access *Other) {
          return Other->Memory == One.Memory && Other->Strides == One.Strides;
        }))
      Memories.push_back(&One);
}

double NewNest::units(const Access &One, size_t Depth, double Unit) const {
  SmallVector<std::pair<double, double>, 16> Steps;
  for (const NewLoop &Loop : ArrayRef(Loops).take_back(Depth))
    if (const double Stride = stride(One, Loop.Source) * Loop.Step;
        Stride > 0 && Loop.Trips > 1)
      Steps.emplace_back(Stride, Loop.Trips);
  llvm::sort(Steps);
  // Bytes in a run without gaps, and the number of such runs.
  double Run = One.ElementBytes, Runs = 1;
  for (auto [Stride, Trips] : Steps)
    if (Stride <= std::max(Run, Unit))
      Run += Stride * (Trips - 1);
    else
      Runs *= Trips;
  return Runs * std::max(1.0, Run / Unit);
}

SmallVector<double, 16> NewNest::footprints(double Unit) const {
  SmallVector<double, 16> Sums(Loops.size() + 1, 0);
  for (const Access *One : Memories)
    for (auto [Depth, Sum] : enumerate(Sums))
      Sum += units(*One, Depth, Unit);
  return Sums;
}

double NewNest::moved(double Capacity, ArrayRef<double> Footprints) const {
  size_t Depth = 0;
  while (Depth < Loops.size() && Footprints[Depth + 1] <= Capacity)
    ++Depth;
  // The next outer loop still reuses the units that do not depend on it.
  const size_t Reused = std::min(Depth + 1, Loops.size());
  double Outside = 1;
  for (const NewLoop &Loop : ArrayRef(Loops).drop_back(Reused))
    Outside *= Loop.Trips;
  return Outside * Footprints[Reused];
}

/// Appends 8 columns, which describe how accesses move along a loop.
void NewNest::describeLoop(unsigned Loop, double Trips,
                           SmallVectorImpl<float> &Row) const {
  float Reads[3] = {}, Writes[3] = {};
  for (const Access &One : Nest.Accesses) {
    const double Stride = stride(One, Loop);
    const unsigned Kind = Stride == 0 ? 0 : Stride == One.ElementBytes ? 1 : 2;
    ++(One.IsWrite ? Writes : Reads)[Kind];
  }
  Row.push_back(log2of(Trips));
  Row.push_back(Nest.isParallel(Loop));
  Row.append(std::begin(Reads), std::end(Reads));
  Row.append(std::begin(Writes), std::end(Writes));
}

/// Appends 9 columns, which describe one vector iteration of the innermost
/// loop.
void NewNest::describeRegisters(SmallVectorImpl<float> &Row) const {
  const double Unroll = Choice.Unroll;
  double Bytes = 1;
  bool IsContiguous = true;
  for (const Access &One : Nest.Accesses) {
    Bytes = std::max(Bytes, double(One.ElementBytes));
    const double Stride = stride(One, Inner);
    IsContiguous &= Stride == One.ElementBytes || (Stride == 0 && !One.IsWrite);
  }
  const bool IsVector = Nest.isParallel(Inner) && IsContiguous;
  const double Lanes = IsVector ? std::min(32 / Bytes, InnerTrips) : 1;
  // Count the accesses per iteration of the source that remain if registers
  // keep values.
  double Loads = 0, Stores = 0, Gathers = 0;
  for (const Access &One : Nest.Accesses) {
    const double Stride = stride(One, Inner);
    double Count = Stride == 0 ? 1 / InnerTrips : 1 / Lanes;
    if (Nest.size() > 1 && stride(One, Around) == 0)
      Count /= Unroll;
    (One.IsWrite ? Stores : Loads) += Count;
    Gathers += Stride > One.ElementBytes ? Count : 0;
  }
  const double Vectors = InnerTrips / Lanes;
  Row.append({float(IsVector), float(log2of(Lanes)), float(Loads),
              float(Stores), float(Gathers), float(log2of(Unroll)),
              // The share of vectors that is wasted, and how often the
              // innermost loop starts.
              float(std::ceil(Vectors) / Vectors - 1),
              float(log2of(Unroll / InnerTrips)), float(log2of(Bytes))});
}

void NewNest::describe(SmallVectorImpl<float> &Row) const {
  const size_t Begin = Row.size();
  describeLoop(Inner, InnerTrips, Row);
  describeLoop(Around, AroundTrips, Row);
  describeRegisters(Row);
  const auto Lines = footprints(LineBytes), Pages = footprints(PageBytes);
  for (double Capacity : CacheBytes)
    Row.push_back(log2of(moved(Capacity / LineBytes, Lines) / Iterations));
  Row.push_back(log2of(moved(TLBPages, Pages) / Iterations));
  // The bytes that the innermost loops, a tile and the whole nest touch.
  for (size_t Depth :
       {size_t(1), size_t(2), size_t(3), size_t(Nest.size()), Loops.size()})
    Row.push_back(log2of(LineBytes * Lines[std::min(Depth, Loops.size())]));
  Row.push_back(log2of(Iterations));
  Row.append({float(Nest.Counts.Additions), float(Nest.Counts.Multiplications),
              float(Nest.Counts.Divisions), float(Nest.Counts.Others)});
  // Count the tile sizes that do not divide the trip counts. The next number
  // counts the loops over tiles.
  float Ragged = 0;
  for (auto [Trips, Tile] : zip(Nest.TripCounts, Choice.Tiles))
    Ragged += Tile > 0 && (Trips < 0 || Trips % Tile != 0);
  Row.append({Ragged, float(Loops.size() - Nest.size()), float(Nest.size()),
              float(Choice.isLeave()), float(Nest.CanUnroll)});
  assert(Row.size() == Begin + NumColumns);
  (void)Begin;
}

NestTensors::NestTensors(const LoopNest &Nest)
    : NumAccesses(Nest.Accesses.size()) {
  for (unsigned Loop = 0; Loop < Nest.size(); ++Loop)
    Parallel.push_back(Nest.isParallel(Loop));
  for (const Access &One : Nest.Accesses) {
    Strides.append(One.Strides.begin(), One.Strides.end());
    Accesses.append({std::int32_t(One.ElementBytes), std::int32_t(One.Memory),
                     One.IsWrite});
  }
  Counts = {Nest.Counts.Additions, Nest.Counts.Multiplications,
            Nest.Counts.Divisions, Nest.Counts.Others};
  for (const TilingChoice &Choice : legalChoices(Nest)) {
    Choices.append(Choice.Tiles.begin(), Choice.Tiles.end());
    Choices.append(Choice.Order.begin(), Choice.Order.end());
    Choices.push_back(Choice.Unroll);
    NewNest(Nest, Choice).describe(Features);
    ++NumChoices;
  }
}

} // namespace MLBridge
