//===- Features.cpp - What a model sees of a kernel -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A model of loops, accesses and caches. It counts distinct cache lines, as
/// in Ferrante, Sarkar and Thrash, "On Estimating and Enhancing Cache
/// Effectiveness", LCPC 1991.
///
//===----------------------------------------------------------------------===//

#include "Features.h"

#include <algorithm>
#include <cmath>
#include <isl/aff.h>
#include <isl/ilp.h>
#include <isl/val.h>
#include <numeric>

namespace MLBridge::polyhedral {

namespace {

using Vector = std::vector<double>;
using Loop = FeatureExtractor::Loop;
using Nest = FeatureExtractor::Nest;

/// Sizes that x86-64 machines have, in bytes or in entries.
constexpr double LineBytes = 64;
constexpr double PageBytes = 4096;
constexpr double L1Lines = 32 * 1024 / LineBytes;
constexpr double L2Lines = 1024 * 1024 / LineBytes;
constexpr double TLBPages = 64;
constexpr double TLB2Pages = 1536;

/// Assumed costs in cycles, for an estimate. A network learns the real costs.
constexpr double AddLatency = 4;
constexpr double OverlappedTrips = 96;
constexpr double L1Cost = 6;
constexpr double L2Cost = 40;
constexpr double TLBCost = 7;
constexpr double TLB2Cost = 30;

/// An access without its constant offset. Accesses that differ only in their
/// offsets count once.
struct Reference {
  const Array *Target;
  /// For each subscript, the factor of each iterator.
  std::vector<Vector> Factors;
  bool IsWritten = false;
};

/// A row of a schedule before it is known which loop it becomes.
struct Row {
  Vector Factors;
  Loop About;
};

} // namespace

static double numberOf(__isl_take isl_val *Value) {
  const double Number = isl_val_get_d(Value);
  isl_val_free(Value);
  return Number;
}

/// Returns the factor of each iterator in an affine function.
static Vector factorsOf(__isl_keep isl_aff *Function) {
  Vector Found;
  const auto Count = isl_aff_dim(Function, isl_dim_in);
  for (int I = 0; I < Count; ++I)
    Found.push_back(
        numberOf(isl_aff_get_coefficient_val(Function, isl_dim_in, I)));
  return Found;
}

static std::vector<Vector> factorsOf(const isl::multi_aff &Functions) {
  std::vector<Vector> Found;
  Found.reserve(Functions.size());
  for (unsigned I = 0; I < Functions.size(); ++I)
    Found.push_back(factorsOf(Functions.at(static_cast<int>(I)).get()));
  return Found;
}

static double dot(const Vector &A, const Vector &B) {
  return std::inner_product(A.begin(), A.end(), B.begin(), 0.0);
}

/// Returns the rows that are linearly independent of earlier rows. Adds rows of
/// single iterators until there are \p Depth rows.
static std::vector<Row> independent(std::vector<Row> Rows, std::size_t Depth) {
  for (std::size_t I = 0; I < Depth; ++I) {
    Row &Unit = Rows.emplace_back();
    Unit.Factors.assign(Depth, 0.0);
    Unit.Factors[I] = 1;
  }
  std::vector<Row> Kept;
  std::vector<Vector> Reduced;
  for (Row &R : Rows) {
    Vector Rest = R.Factors;
    // The Gram-Schmidt process is exact enough, because the factors are small
    // integers.
    for (const Vector &Other : Reduced) {
      const double Share = dot(Rest, Other) / dot(Other, Other);
      for (std::size_t I = 0; I < Depth; ++I)
        Rest[I] -= Share * Other[I];
    }
    if (dot(Rest, Rest) < 1e-6)
      continue;
    Reduced.push_back(std::move(Rest));
    Kept.push_back(std::move(R));
  }
  return Kept;
}

/// Returns the loops' directions, the columns of the inverse matrix of \p Rows.
static std::vector<Vector> directionsOf(const std::vector<Row> &Rows) {
  const std::size_t Depth = Rows.size();
  std::vector<Vector> Left;
  std::vector<Vector> Right(Depth, Vector(Depth, 0.0));
  for (std::size_t I = 0; I < Depth; ++I) {
    Left.push_back(Rows[I].Factors);
    Right[I][I] = 1;
  }
  for (std::size_t C = 0; C < Depth; ++C) {
    std::size_t Pivot = C;
    for (std::size_t I = C + 1; I < Depth; ++I)
      if (std::fabs(Left[I][C]) > std::fabs(Left[Pivot][C]))
        Pivot = I;
    std::swap(Left[C], Left[Pivot]);
    std::swap(Right[C], Right[Pivot]);
    for (std::size_t I = 0; I < Depth; ++I) {
      const double Share = (I == C ? Left[C][C] - 1 : Left[I][C]) / Left[C][C];
      for (std::size_t J = 0; J < Depth; ++J) {
        Left[I][J] -= Share * Left[C][J];
        Right[I][J] -= Share * Right[C][J];
      }
    }
  }
  std::vector<Vector> Directions(Depth, Vector(Depth, 0.0));
  for (std::size_t I = 0; I < Depth; ++I)
    for (std::size_t J = 0; J < Depth; ++J)
      Directions[J][I] = Right[I][J];
  return Directions;
}

/// Returns the loops of a statement whose schedule has these rows.
static Nest nestOf(const Statement &S, const std::vector<Row> &Rows) {
  Vector Box;
  for (std::size_t I = 0; I < S.Iterators.size(); ++I) {
    const int Position = static_cast<int>(I);
    Box.push_back(numberOf(isl_set_dim_max_val(S.Domain.copy(), Position)) -
                  numberOf(isl_set_dim_min_val(S.Domain.copy(), Position)) + 1);
  }
  const std::vector<Row> Kept = independent(Rows, Box.size());
  const std::vector<Vector> Directions = directionsOf(Kept);
  Nest Found;
  for (std::size_t L = 0; L < Kept.size(); ++L) {
    Loop New = Kept[L].About;
    New.Step = Directions[L];
    New.Trips = 1e18;
    for (std::size_t I = 0; I < Box.size(); ++I)
      if (std::fabs(New.Step[I]) > 1e-9)
        New.Trips = std::min(New.Trips, Box[I] / std::fabs(New.Step[I]));
    New.Trips = std::max(New.Trips, 1.0);
    New.IsSkewed = std::ranges::count_if(Kept[L].Factors,
                                         [](double F) { return F != 0; }) > 1;
    Found.push_back(std::move(New));
  }
  return Found;
}

/// Appends the rows of a band to the rows of each statement inside it.
static void appendRows(const isl::schedule_node &Node, int Number,
                       const std::vector<Statement> &Statements,
                       std::vector<std::vector<Row>> &Rows) {
  const auto Band = Node.as<isl::schedule_node_band>();
  const isl::union_set Inside =
      isl::manage(isl_schedule_node_get_domain(Node.get()));
  for (std::size_t S = 0; S < Statements.size(); ++S) {
    if (Inside.intersect(Statements[S].Domain.to_union_set()).is_empty())
      continue;
    for (unsigned M = 0; M < Band.n_member(); ++M) {
      Row New;
      New.About.Band = Number;
      New.About.Member = isTilable(Node) ? static_cast<int>(M) : -1;
      New.About.IsParallel = Band.member_get_coincident(static_cast<int>(M));
      Band.partial_schedule()
          .at(static_cast<int>(M))
          .pw_multi_aff_list()
          .foreach ([&](const isl::pw_multi_aff &Function) {
            const char *Name =
                isl_pw_multi_aff_get_tuple_name(Function.get(), isl_dim_in);
            if (Name == Statements[S].Name && Function.isa_multi_aff())
              New.Factors = factorsOf(Function.as_multi_aff())[0];
          });
      if (New.Factors.size() == Statements[S].Iterators.size())
        Rows[S].push_back(std::move(New));
    }
  }
}

FeatureExtractor::FeatureExtractor(const Kernel &K, const Scheduler &S)
    : Source(K) {
  std::vector<Nest> &Original = Nests.emplace_back();
  for (const Statement &Each : K.Statements) {
    std::vector<Row> Rows;
    for (Vector &Factors : factorsOf(Each.Time))
      Rows.push_back({std::move(Factors), {}});
    Original.push_back(nestOf(Each, Rows));
  }
  for (int Number = 1; Number < S.numSchedules(); ++Number) {
    std::vector<std::vector<Row>> Rows(K.Statements.size());
    int NumBands = 0;
    S.schedule(Number).root().foreach_descendant_top_down(
        [&](const isl::schedule_node &Node) {
          if (Node.isa<isl::schedule_node_band>())
            appendRows(Node, NumBands++, K.Statements, Rows);
          return true;
        });
    std::vector<Nest> &New = Nests.emplace_back();
    for (std::size_t I = 0; I < K.Statements.size(); ++I)
      New.push_back(nestOf(K.Statements[I], Rows[I]));
  }
}

/// Returns the loops after tiling: for each band its loops over tiles, then
/// its loops inside a tile.
static Nest tiled(const Nest &Loops, const Choice &C, int &NumTileLoops) {
  Nest Result;
  for (std::size_t Begin = 0, End = 0; Begin < Loops.size(); Begin = End) {
    while (End < Loops.size() && Loops[End].Band == Loops[Begin].Band)
      ++End;
    if (Loops[Begin].Member < 0 || C.Schedule == 0) {
      Result.insert(Result.end(), Loops.begin() + Begin, Loops.begin() + End);
      continue;
    }
    Nest Points;
    for (const int Number : C.Order)
      for (std::size_t I = Begin; I < End; ++I)
        if (Loops[I].Member == Number)
          Points.push_back(Loops[I]);
    for (std::size_t I = Begin; I < End; ++I) {
      const double Size = C.Sizes[Loops[I].Member];
      if (Size == 0 || Size >= Loops[I].Trips)
        continue;
      Loop Outer = Loops[I];
      Outer.Trips = Outer.Trips / Size;
      for (double &Step : Outer.Step)
        Step *= Size;
      Result.push_back(std::move(Outer));
      ++NumTileLoops;
      for (Loop &Point : Points)
        if (Point.Member == Loops[I].Member)
          Point.Trips = Size;
    }
    Result.insert(Result.end(), Points.begin(), Points.end());
  }
  return Result;
}

/// Returns the number of distinct blocks of \p BlockBytes that a reference
/// touches in the loops from \p Begin on.
static double blocksOf(const Reference &R, const Nest &Loops, std::size_t Begin,
                       double BlockBytes) {
  double Elements = 1;
  Vector Widths(R.Factors.size(), 1.0);
  for (std::size_t L = Begin; L < Loops.size(); ++L) {
    bool Moves = false;
    for (std::size_t I = 0; I < Widths.size(); ++I) {
      const double Step = std::fabs(dot(R.Factors[I], Loops[L].Step));
      Moves |= Step > 1e-9;
      Widths[I] += Step * (Loops[L].Trips - 1);
    }
    Elements *= Moves ? Loops[L].Trips : 1;
  }
  double Blocks = 1;
  double Bytes = sizeof(double);
  for (std::size_t I = Widths.size(); I-- > 0;) {
    const auto Extent = static_cast<double>(R.Target->Extents[I]);
    const double Width = std::min(Widths[I], Extent);
    // A long row counts the blocks that it fills. Short rows share a block.
    Blocks *= std::max(1.0, Width * std::min(1.0, Bytes / BlockBytes));
    Bytes *= Extent;
  }
  return std::min(Elements, Blocks);
}

/// Returns how many blocks each reference loads into a cache with \p Capacity
/// blocks, for each instance of the statement.
static Vector missesOf(const std::vector<Reference> &References,
                       const Nest &Loops, double BlockBytes, double Capacity) {
  std::size_t Fits = Loops.size();
  while (Fits > 0) {
    double Sum = 0;
    for (const Reference &R : References)
      Sum += blocksOf(R, Loops, Fits - 1, BlockBytes);
    if (Sum > Capacity)
      break;
    --Fits;
  }
  // The next outer loop reuses the blocks that its iterations share.
  const std::size_t Begin = Fits > 0 ? Fits - 1 : 0;
  double Inside = 1;
  for (std::size_t L = Begin; L < Loops.size(); ++L)
    Inside *= Loops[L].Trips;
  Vector Misses;
  for (const Reference &R : References)
    Misses.push_back(blocksOf(R, Loops, Begin, BlockBytes) / Inside);
  return Misses;
}

static double sumOf(const Vector &Values) {
  return std::accumulate(Values.begin(), Values.end(), 0.0);
}

/// Returns how many elements of the array an access moves when the loop's next
/// iteration begins.
static double strideOf(const std::vector<Vector> &Factors, const Array &Target,
                       const Loop &L) {
  double Stride = 0;
  double Elements = 1;
  for (std::size_t I = Factors.size(); I-- > 0;) {
    Stride += Elements * dot(Factors[I], L.Step);
    Elements *= static_cast<double>(Target.Extents[I]);
  }
  return std::fabs(Stride);
}

/// Returns how many iterations of a loop lie between two accesses to the same
/// element, or 0 if the loop does not connect them.
static double distanceOf(const Access &A, const Access &B, const Loop &L) {
  const isl::multi_aff Difference = A.Subscripts.sub(B.Subscripts);
  double Distance = 0;
  for (unsigned I = 0; I < Difference.size(); ++I) {
    const isl::aff Function = Difference.at(static_cast<int>(I));
    for (const double Factor : factorsOf(Function.get()))
      if (Factor != 0)
        return 0;
    const double Offset = numberOf(isl_aff_get_constant_val(Function.get()));
    const double Step =
        dot(factorsOf(A.Subscripts.at(static_cast<int>(I)).get()), L.Step);
    if (std::fabs(Step) < 1e-9) {
      if (Offset != 0)
        return 0;
      continue;
    }
    if (Distance != 0 && std::fabs(Distance - Offset / Step) > 1e-9)
      return 0;
    Distance = Offset / Step;
  }
  return Distance;
}

namespace {

/// Properties of one statement in its innermost loop.
struct InnerLoop {
  int Stride0 = 0;
  int Stride1 = 0;
  int OtherReads = 0;
  int OtherWrites = 0;
  bool IsRecurrence = false;
};

} // namespace

static InnerLoop innerLoopOf(const Statement &S, const Kernel &K,
                             const Loop &Inner) {
  InnerLoop Found;
  for (const Access &A : S.Accesses) {
    const double Stride =
        strideOf(factorsOf(A.Subscripts), K.array(A.Array), Inner);
    if (std::fabs(Stride) < 1e-9)
      ++Found.Stride0;
    else if (std::fabs(Stride - 1) < 1e-9)
      ++Found.Stride1;
    else
      ++(A.IsWrite ? Found.OtherWrites : Found.OtherReads);
    if (!A.IsWrite)
      continue;
    for (const Access &B : S.Accesses)
      if (!B.IsWrite && B.Array == A.Array)
        Found.IsRecurrence |= std::fabs(Stride) < 1e-9
                                  ? B.Subscripts.plain_is_equal(A.Subscripts)
                                  : distanceOf(A, B, Inner) != 0;
  }
  return Found;
}

static std::vector<Reference> referencesOf(const Statement &S,
                                           const Kernel &K) {
  std::vector<Reference> Found;
  for (const Access &A : S.Accesses) {
    Reference New = {&K.array(A.Array), factorsOf(A.Subscripts), A.IsWrite};
    auto Known = std::ranges::find_if(Found, [&](const Reference &R) {
      return R.Target == New.Target && R.Factors == New.Factors;
    });
    if (Known == Found.end())
      Found.push_back(std::move(New));
    else
      Known->IsWritten |= A.IsWrite;
  }
  return Found;
}

static float logOf(double Value) {
  return static_cast<float>(std::log2(std::max(Value, 1e-5)));
}

/// Adds the features of the statement \p S to \p Sums, multiplied by \p Weight,
/// the statement's share of all instances.
static void addStatement(const Statement &S, const Kernel &K, Nest Loops,
                         double Weight, Vector &Sums) {
  std::erase_if(Loops, [](const Loop &L) { return L.Trips <= 1; });
  if (Loops.empty())
    return;
  const Loop &Inner = Loops.back();
  const Loop *Outer = Loops.size() > 1 ? &Loops[Loops.size() - 2] : nullptr;
  const double Area = Inner.Trips * (Outer ? Outer->Trips : 1);
  const InnerLoop In = innerLoopOf(S, K, Inner);
  const auto Accesses = static_cast<double>(S.Accesses.size());
  const bool Vectorizes =
      !In.IsRecurrence && In.OtherReads + In.OtherWrites == 0;
  // A processor overlaps a short recurrence with the next iteration of the loop
  // around it.
  const bool Overlaps = Outer && !innerLoopOf(S, K, *Outer).IsRecurrence;
  const double Waiting =
      !In.IsRecurrence ? 0
      : Overlaps ? std::min(1.0, Inner.Trips / OverlappedTrips) * AddLatency
                 : AddLatency;
  const double Loads = In.Stride1 + In.OtherReads + In.OtherWrites;
  const double InCore = std::max(Waiting, Loads / (Vectorizes ? 4 : 2)) +
                        2 / Inner.Trips + 4 / Area;
  const std::vector<Reference> References = referencesOf(S, K);
  const Vector L1 = missesOf(References, Loops, LineBytes, L1Lines);
  const Vector L2 = missesOf(References, Loops, LineBytes, L2Lines);
  const double TLB = sumOf(missesOf(References, Loops, PageBytes, TLBPages));
  const double TLB2 = sumOf(missesOf(References, Loops, PageBytes, TLB2Pages));
  const auto Add = [&](Feature F, double Value) { Sums[F] += Weight * Value; };
  Add(Stride0, In.Stride0 / Accesses);
  Add(Stride1, In.Stride1 / Accesses);
  Add(OtherReads, In.OtherReads);
  Add(OtherWrites, In.OtherWrites);
  Add(Recurrences, In.IsRecurrence);
  Add(Latency, Waiting);
  Add(Vectorizable, Vectorizes);
  Add(Parallel, Inner.IsParallel);
  Add(Skewed, std::ranges::count_if(Loops, &Loop::IsSkewed));
  Add(InnerTrips, std::log2(Inner.Trips));
  Add(InverseTrips, 1 / Inner.Trips);
  Add(InverseArea, 1 / Area);
  Add(NumLoops, static_cast<double>(Loops.size()));
  Add(Cycles, InCore);
  Add(MissesL1, sumOf(L1));
  Add(MissesL2, sumOf(L2));
  Add(MissesTLB, TLB);
  Add(MissesTLB2, TLB2);
  Add(Estimate, InCore + L1Cost * sumOf(L1) + L2Cost * sumOf(L2) +
                    TLBCost * TLB + TLB2Cost * TLB2);
  for (std::size_t I = 0; I < References.size(); ++I) {
    const Reference &R = References[I];
    if (R.IsWritten) {
      Add(WriteMissesL1, L1[I]);
      Add(WriteMissesL2, L2[I]);
    }
    // Count these misses separately, because processors prefetch consecutive
    // elements.
    if (strideOf(R.Factors, *R.Target, Inner) > 1.5) {
      Add(StridedMissesL1, L1[I]);
      Add(StridedMissesL2, L2[I]);
    }
  }
}

std::vector<float> FeatureExtractor::featuresOf(const Choice &C) const {
  const std::vector<Nest> &Original = Nests.front();
  Vector Counts;
  for (const Nest &Loops : Original)
    Counts.push_back(std::accumulate(
        Loops.begin(), Loops.end(), 1.0,
        [](double Product, const Loop &L) { return Product * L.Trips; }));
  const double All = std::accumulate(Counts.begin(), Counts.end(), 0.0);
  Vector Sums(NumFeatures, 0.0);
  int NumTileLoops = 0;
  for (std::size_t I = 0; I < Counts.size(); ++I)
    addStatement(Source.Statements[I], Source,
                 tiled(Nests[C.Schedule][I], C, NumTileLoops), Counts[I] / All,
                 Sums);
  double Size = 0;
  for (const Array &A : Source.Arrays)
    Size += std::accumulate(A.Extents.begin(), A.Extents.end(),
                            double{sizeof(double)}, std::multiplies<>());
  std::vector<float> Result(Sums.begin(), Sums.end());
  for (const Feature F :
       {Cycles, MissesL1, MissesL2, MissesTLB, MissesTLB2, WriteMissesL1,
        WriteMissesL2, StridedMissesL1, StridedMissesL2, Estimate})
    Result[F] = logOf(Sums[F]);
  Result[Instances] = logOf(All);
  Result[Bytes] = logOf(Size);
  Result[NumStatements] = static_cast<float>(Source.Statements.size());
  Result[IsOriginal] = C.Schedule == 0;
  Result[IsSeparate] = C.Schedule == 2;
  Result[TileLoops] = static_cast<float>(NumTileLoops);
  return Result;
}

} // namespace MLBridge::polyhedral
