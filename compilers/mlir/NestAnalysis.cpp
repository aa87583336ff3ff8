//===- NestAnalysis.cpp - Describes loop nests of MLIR --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads trip counts, strides, operations and dependences.
///
//===----------------------------------------------------------------------===//

#include "NestAnalysis.h"

#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/LoopAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/Dialect/Affine/IR/AffineValueMap.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::affine;

namespace MLBridge {

/// Replaces an unknown stride, in elements.
static constexpr int64_t TypicalStride = 1024;

/// The maximum number of accesses in an affine nest that is analysed, because
/// the analysis compares all pairs of accesses, at about 10 us for each pair.
static constexpr size_t MaxAccesses = 128;

/// Returns the size of an element in bytes, or nullopt if \p Element is not a
/// type of numbers.
static std::optional<int64_t> bytesOf(Type Element) {
  if (Element.isIndex())
    return 8;
  if (!Element.isIntOrFloat())
    return std::nullopt;
  return std::max<int64_t>(1, Element.getIntOrFloatBitWidth() / 8);
}

/// Returns the strides of a memref or a tensor in elements.
static std::optional<SmallVector<int64_t>> stridesOf(ShapedType Type) {
  SmallVector<int64_t> Strides;
  int64_t Offset = 0;
  if (auto Buffer = dyn_cast<MemRefType>(Type)) {
    if (failed(Buffer.getStridesAndOffset(Strides, Offset)))
      return std::nullopt;
  } else {
    Strides.resize(Type.getRank());
    int64_t Stride = 1;
    for (auto [Dim, Into] : zip(reverse(Type.getShape()), reverse(Strides))) {
      Into = Stride;
      Stride *= ShapedType::isDynamic(Dim) ? TypicalStride : Dim;
    }
  }
  for (int64_t &Stride : Strides)
    if (ShapedType::isDynamic(Stride))
      Stride = TypicalStride;
  return Strides;
}

/// Returns how far the address moves per iteration of each loop, in bytes. \p
/// Positions has, for each loop, the number of the loop's operand in \p Map, or
/// nullopt if \p Map does not use the loop.
static SmallVector<int64_t, 8>
stridesAlong(AffineMap Map, ArrayRef<std::optional<unsigned>> Positions,
             ArrayRef<int64_t> Strides, int64_t ElementBytes) {
  auto AddressAt = [&](std::optional<unsigned> One) {
    SmallVector<Attribute> Operands(
        Map.getNumInputs(),
        IntegerAttr::get(IndexType::get(Map.getContext()), 0));
    if (One)
      Operands[*One] = IntegerAttr::get(IndexType::get(Map.getContext()), 1);
    SmallVector<int64_t> Indices;
    int64_t Address = 0;
    bool HasPoison = false;
    Map.partialConstantFold(Operands, &Indices, &HasPoison);
    for (auto [Index, Stride] : zip(Indices, Strides))
      Address += Index * Stride * ElementBytes;
    return Address;
  };
  SmallVector<int64_t, 8> Along;
  const int64_t Zero = AddressAt(std::nullopt);
  for (std::optional<unsigned> Position : Positions)
    Along.push_back(Position ? AddressAt(Position) - Zero : 0);
  return Along;
}

static void count(Operation &Op, Operations &Counts) {
  enum { Addition, Multiplication, Division, Other, None };
  const auto Kind =
      llvm::StringSwitch<int>(Op.getName().getStringRef())
          .Cases({"arith.addf", "arith.addi", "arith.subf", "arith.subi",
                  "arith.cmpf", "arith.cmpi", "arith.maximumf", "arith.maxnumf",
                  "arith.maxsi", "arith.minimumf", "arith.minnumf",
                  "arith.minsi", "arith.select"},
                 Addition)
          .Cases({"arith.mulf", "arith.muli"}, Multiplication)
          .Cases({"arith.divf", "arith.divsi", "arith.divui", "arith.remsi",
                  "arith.remf"},
                 Division)
          .Cases({"arith.constant", "affine.load", "affine.store",
                  "affine.apply", "affine.yield", "linalg.yield",
                  "linalg.index"},
                 None)
          .Default(Op.getName().getDialectNamespace() == "math" ? Division
                                                                : Other);
  Counts.Additions += Kind == Addition;
  Counts.Multiplications += Kind == Multiplication;
  Counts.Divisions += Kind == Division;
  Counts.Others += Kind == Other;
}

/// Returns a pointer that identifies the memory of \p Buffer: the operation,
/// symbol or argument that made it. Returns null if that is unknown.
static void *originOf(Value Buffer) {
  while (Operation *Made = Buffer.getDefiningOp()) {
    if (auto View = dyn_cast<ViewLikeOpInterface>(Made)) {
      Buffer = View.getViewSource();
      continue;
    }
    if (auto Global = dyn_cast<memref::GetGlobalOp>(Made))
      // Attributes are unique, so equal names are the same pointer.
      return const_cast<void *>(Global.getNameAttr().getAsOpaquePointer());
    if (isa<memref::AllocOp, memref::AllocaOp>(Made))
      return Made;
    return nullptr;
  }
  Block *Owner = cast<BlockArgument>(Buffer).getOwner();
  return isa<FunctionOpInterface>(Owner->getParentOp()) && Owner->isEntryBlock()
             ? Buffer.getAsOpaquePointer()
             : nullptr;
}

/// True if two different values may name the same memory.
static bool mayOverlap(const llvm::MapVector<Value, unsigned> &Buffers) {
  if (Buffers.size() < 2)
    return false;
  llvm::SmallPtrSet<void *, 8> Seen;
  return any_of(Buffers, [&](const auto &Entry) {
    void *Origin = originOf(Entry.first);
    return !Origin || !Seen.insert(Origin).second;
  });
}

/// Adds an access to \p Nest. Returns false if the access's address is unknown.
static bool addAccess(LoopNest &Nest, ShapedType Type, AffineMap Map,
                      ArrayRef<std::optional<unsigned>> Positions,
                      unsigned Memory, bool IsWrite) {
  std::optional<int64_t> Bytes = bytesOf(Type.getElementType());
  std::optional<SmallVector<int64_t>> Strides = stridesOf(Type);
  if (!Bytes || !Strides)
    return false;
  Nest.Accesses.push_back({Memory,
                           stridesAlong(Map, Positions, *Strides, *Bytes),
                           *Bytes, IsWrite});
  return true;
}

/// Adds the dependences between all accesses. Returns false if one is unknown.
static bool addDependences(LoopNest &Nest, ArrayRef<AffineForOp> Loops,
                           ArrayRef<MemRefAccess> Accesses) {
  const unsigned Outside = getNestingDepth(Loops.front());
  for (const MemRefAccess &From : Accesses)
    for (const MemRefAccess &To : Accesses) {
      if (From.memref != To.memref || !(From.isStore() || To.isStore()))
        continue;
      for (unsigned Depth = 1; Depth <= Loops.size(); ++Depth) {
        SmallVector<DependenceComponent, 2> Components;
        const DependenceResult Result = checkMemrefAccessDependence(
            From, To, Outside + Depth, nullptr, &Components);
        if (Result.value == DependenceResult::Failure)
          return false;
        if (!hasDependence(Result))
          continue;
        SmallVector<Distance, 8> Distances(Loops.size());
        for (const DependenceComponent &One : Components)
          if (const auto *Loop = find(Loops, One.op); Loop != Loops.end())
            Distances[Loop - Loops.begin()] = {
                One.lb.value_or(Distance::Unbounded),
                One.lb == 0 && One.ub == 0};
        Nest.Dependences.push_back(std::move(Distances));
      }
    }
  return true;
}

/// True if the loop has a step of 1, carries no values, and its bounds depend
/// on no loop of the nest.
static bool isSimple(AffineForOp Loop, AffineForOp Root) {
  auto IsOutside = [&Root](Value Operand) {
    return !Root->isAncestor(Operand.getParentBlock()->getParentOp());
  };
  return Loop.getStepAsInt() == 1 && Loop.getNumIterOperands() == 0 &&
         llvm::all_of(Loop.getLowerBoundOperands(), IsOutside) &&
         llvm::all_of(Loop.getUpperBoundOperands(), IsOutside);
}

std::optional<LoopNest> describeAffine(ArrayRef<AffineForOp> Loops) {
  LoopNest Nest;
  for (AffineForOp Loop : Loops) {
    if (!isSimple(Loop, Loops.front()))
      return std::nullopt;
    std::optional<uint64_t> Trips = getConstantTripCount(Loop);
    if (Trips == 0)
      return std::nullopt;
    Nest.TripCounts.push_back(Trips ? int64_t(*Trips) : LoopNest::Unknown);
  }
  llvm::MapVector<Value, unsigned> Buffers;
  SmallVector<MemRefAccess, 8> Accesses;
  AffineForOp Innermost = Loops.back();
  for (Operation &Op : *Innermost.getBody()) {
    count(Op, Nest.Counts);
    if (!isa<AffineReadOpInterface, AffineWriteOpInterface>(Op)) {
      if (!isa<AffineYieldOp>(Op) && (!isPure(&Op) || Op.getNumRegions() != 0))
        return std::nullopt;
      continue;
    }
    if (Accesses.size() == MaxAccesses)
      return std::nullopt;
    const MemRefAccess &One = Accesses.emplace_back(&Op);
    AffineValueMap Map;
    One.getAccessMap(&Map);
    SmallVector<std::optional<unsigned>> Positions;
    for (AffineForOp Loop : Loops) {
      const auto *At = find(Map.getOperands(), Loop.getInductionVar());
      Positions.push_back(
          At == Map.getOperands().end()
              ? std::optional<unsigned>()
              : std::optional<unsigned>(At - Map.getOperands().begin()));
    }
    const unsigned Memory =
        Buffers.try_emplace(One.memref, Buffers.size()).first->second;
    if (!isa<AffineLoadOp, AffineStoreOp>(Op) ||
        !addAccess(Nest, cast<MemRefType>(One.memref.getType()),
                   Map.getAffineMap(), Positions, Memory, One.isStore()))
      return std::nullopt;
  }
  if (Accesses.empty() || mayOverlap(Buffers) ||
      !addDependences(Nest, Loops, Accesses))
    return std::nullopt;
  return Nest;
}

/// Adds the dependences of a linalg operation: its reductions keep the order of
/// their iterations.
static void addReductions(LoopNest &Nest,
                          ArrayRef<utils::IteratorType> Iterators) {
  for (auto [Loop, Kind] : enumerate(Iterators)) {
    if (Kind == utils::IteratorType::parallel)
      continue;
    SmallVector<Distance, 8> Distances(Nest.size());
    for (auto [Other, Into] : enumerate(Distances)) {
      if (Other < Loop || Iterators[Other] == utils::IteratorType::parallel)
        Into = {0, true};
      else if (Other == Loop)
        Into = {1, false};
    }
    Nest.Dependences.push_back(std::move(Distances));
  }
}

/// True if \p Op writes a buffer that it also accesses through another map, so
/// that an iteration may read or overwrite the result of another iteration.
static bool overwritesOwnOperands(linalg::LinalgOp Op) {
  return llvm::any_of(Op.getDpsInitsMutable(), [&Op](OpOperand &Output) {
    return llvm::any_of(Op->getOpOperands(), [&](OpOperand &Other) {
      return Other.get() == Output.get() &&
             Op.getMatchingIndexingMap(&Other) !=
                 Op.getMatchingIndexingMap(&Output);
    });
  });
}

std::optional<LoopNest> describeLinalg(linalg::LinalgOp Op) {
  LoopNest Nest;
  Nest.CanUnroll = Op.hasPureBufferSemantics();
  if (!Nest.CanUnroll && !Op.hasPureTensorSemantics())
    return std::nullopt;
  for (int64_t Range : Op.getStaticLoopRanges())
    Nest.TripCounts.push_back(ShapedType::isDynamic(Range) ? LoopNest::Unknown
                                                           : Range);
  // Refuse sizes that are known only at run time, because they need not be
  // valid symbols of affine loops.
  if (Nest.size() == 0 || is_contained(Nest.TripCounts, 0) ||
      (Nest.CanUnroll && is_contained(Nest.TripCounts, LoopNest::Unknown)))
    return std::nullopt;
  SmallVector<std::optional<unsigned>> Positions;
  for (unsigned Loop = 0; Loop < Nest.size(); ++Loop)
    Positions.push_back(Loop);
  llvm::MapVector<Value, unsigned> Buffers;
  for (OpOperand &Operand : Op->getOpOperands()) {
    auto Type = dyn_cast<ShapedType>(Operand.get().getType());
    if (!Type)
      continue;
    const unsigned Memory =
        Buffers.try_emplace(Operand.get(), Buffers.size()).first->second;
    AffineMap Map = Op.getMatchingIndexingMap(&Operand);
    const bool IsOutput = Op.isDpsInit(&Operand);
    if ((!IsOutput || Op.payloadUsesValueFromOperand(&Operand)) &&
        !addAccess(Nest, Type, Map, Positions, Memory, /*IsWrite=*/false))
      return std::nullopt;
    if (IsOutput &&
        !addAccess(Nest, Type, Map, Positions, Memory, /*IsWrite=*/true))
      return std::nullopt;
  }
  if (Nest.CanUnroll && (mayOverlap(Buffers) || overwritesOwnOperands(Op)))
    return std::nullopt;
  for (Operation &Inner : *Op.getBlock()) {
    // Effects such as calls and stores must keep their order.
    if (!isMemoryEffectFree(&Inner))
      return std::nullopt;
    count(Inner, Nest.Counts);
  }
  addReductions(Nest, Op.getIteratorTypesArray());
  return Nest;
}

} // namespace MLBridge
