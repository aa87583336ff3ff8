//===- AllocationObservation.h - The features of a function -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AllocationObservation describes a function to a model before register
/// allocation. It is a graph, whose nodes are live ranges and whose edges are
/// interferences, as in RL4ReAl (VenkataKeerthy et al., CC 2023).
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_ALLOCATIONOBSERVATION_H
#define MLBRIDGE_LLVM_REGALLOC_ALLOCATIONOBSERVATION_H

#include "RegAlloc/MIR2Vec.h"

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/FeatureSet.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/CodeGen/Register.h"
#include "llvm/CodeGen/SlotIndexes.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class LiveInterval;
class RegisterClassInfo;
class TargetRegisterClass;
} // namespace llvm

namespace MLBridge {

struct AllocationContext;

/// Reuse one object for many functions, so that it allocates no memory once its
/// buffers have grown.
class AllocationObservation {
public:
  /// The columns of the feature `ranges`.
  enum Column {
    Size,        ///< log(1 + instructions in all segments).
    Weight,      ///< log(1 + spill weight), or 1 if not spillable.
    Operands,    ///< log(1 + uses and definitions).
    Reads,       ///< log(1 + reads, weighted by the blocks' frequencies).
    Writes,      ///< log(1 + writes, weighted in the same way).
    Hottest,     ///< log(1 + frequency of the hottest block with an operand).
    Local,       ///< 1 if the range lies in one block.
    CrossesCall, ///< 1 if a call in the range overwrites registers.
    Spillable,   ///< 1 if the range can be spilled.
    Hinted,      ///< 1 if a physical register would save a copy.
    Remat,       ///< 1 if the value can be computed again.
    ClassSize,   ///< Registers of the class, divided by 16.
    Degree,      ///< log(1 + interfering ranges).
    Pressure,    ///< Largest number of live ranges that compete at a point,
                 ///< including this range, divided by the class's registers.
    Begin,       ///< Position of the start in the function, from 0 to 1.
    PressureAtStart ///< Like Pressure, but where the range begins.
  };
  static constexpr std::size_t Columns = PressureAtStart + 1;

  /// Describes the live ranges of \p Context, whose spill weights must have
  /// been computed. \p Classes belongs to the same function.
  void build(const AllocationContext &Context,
             const llvm::RegisterClassInfo &Classes);

  /// Does the same as build(), but before spill weights and hints have been
  /// computed. Computes them and then removes them, because greedy computes
  /// them later.
  void buildBefore(const AllocationContext &Context);

  /// Describes the instructions of all live ranges by the vectors in the file
  /// \p Vocabulary, which the first call reads. Does nothing if the name is
  /// empty. Returns an error of MIR2Vec::read().
  Error addInstructions(const AllocationContext &Context,
                        llvm::StringRef Vocabulary);

  /// Sets the names of the function and of its source file, `function` and
  /// `file`. Invalid UTF-8 is replaced.
  void setNames(FeatureSet &Into) const;

  /// Sets the names and these features, which \p Into borrows until the next
  /// build():
  ///
  /// - `ranges` float [n, 16]: the columns above, a row for each live range in
  ///   the order of the virtual registers' numbers.
  /// - `spill_weights` float [n]: LLVM's weights. An infinite weight becomes
  ///   the largest float.
  /// - `interferences` int32 [m, 2]: pairs of rows whose ranges interfere, in
  ///   ascending order. The lower row of a pair comes first.
  ///
  /// After addInstructions(), there are two further features:
  ///
  /// - `instructions` float [k, d]: a vector for each instruction that reads or
  ///   writes a live range, range by range, in the order of the code.
  /// - `instruction_ends` int32 [n]: the end index of each live range's
  ///   instructions. The instructions of the next range begin there.
  void setFeatures(FeatureSet &Into) const;

  std::size_t size() const { return Registers.size(); }
  /// Returns the row of \p Reg, or size() if it has none.
  std::size_t rowOf(llvm::Register Reg) const {
    const auto Found = Rows.find(Reg);
    return Found == Rows.end() ? size() : Found->second;
  }

  /// Returns the columns of \p Range. If the range was split off after build(),
  /// its columns about interferences are the columns of the original range. The
  /// result is valid until the next call.
  llvm::ArrayRef<float> row(const AllocationContext &Context,
                            const llvm::LiveInterval &Range);

  /// Returns the vectors of the instructions that read or write \p Range, in
  /// the order of the code: [k, dimension()]. Empty without addInstructions().
  /// The result is valid until the next build().
  llvm::ArrayRef<float> instructionsOf(const AllocationContext &Context,
                                       const llvm::LiveInterval &Range);
  /// The number of elements of a vector, or 0 without addInstructions().
  unsigned dimension() const { return Vectors ? Vectors->dimension() : 0; }

private:
  struct Segment {
    llvm::SlotIndex Begin, End;
    std::uint32_t Row;
  };

  void addRows(const AllocationContext &Context);
  void describe(const AllocationContext &Context,
                const llvm::LiveInterval &Range, float *Into) const;
  void appendInstructions(const AllocationContext &Context,
                          const llvm::LiveInterval &Range,
                          std::vector<float> &Into) const;
  void findSharing(const AllocationContext &Context,
                   const llvm::RegisterClassInfo &Classes);
  void findInterferences(const llvm::RegisterClassInfo &Classes);
  void writePairs();
  /// Records that two ranges interfere.
  void addPair(std::uint32_t A, std::uint32_t B);
  /// True if the classes of the two ranges have a register, or a part of a
  /// register, in common.
  bool compete(std::uint32_t A, std::uint32_t B) const {
    return Shares[ClassOf[A] * ClassesUsed.size() + ClassOf[B]] != 0;
  }
  float &at(std::size_t Row, Column C) { return Matrix[Row * Columns + C]; }

  std::string FunctionName, FileName;
  std::vector<const llvm::LiveInterval *> Registers;
  llvm::DenseMap<llvm::Register, std::uint32_t> Rows;
  std::vector<float> Matrix;
  std::vector<float> Weights;
  std::optional<MIR2Vec> Vectors;
  /// The vectors of instructions, and the end index of each range's
  /// instructions. Empty without a vocabulary.
  std::vector<float> Instructions;
  std::vector<std::int32_t> InstructionEnds;
  /// The columns, and the vectors, of ranges that were created after build().
  llvm::DenseMap<llvm::Register, std::array<float, Columns>> New;
  llvm::DenseMap<llvm::Register, std::vector<float>> NewInstructions;
  /// The rows of all pairs. The lower row comes first.
  std::vector<std::int32_t> Pairs;

  /// The register classes of the ranges, the index of each range's class, and a
  /// matrix that states which classes share a register.
  std::vector<const llvm::TargetRegisterClass *> ClassesUsed;
  std::vector<std::uint32_t> ClassOf;
  std::vector<std::uint8_t> Shares;
  /// The segments of all ranges, and the segments that are live at a point.
  std::vector<Segment> Segments, Active;
  std::vector<std::uint32_t> Competing;
  /// The pairs found so far, as a list and as a set. The set is PairBits for at
  /// most MaxMatrix ranges, and otherwise KnownPairs.
  std::vector<std::uint64_t> Found;
  llvm::BitVector PairBits;
  llvm::DenseSet<std::uint64_t> KnownPairs;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ALLOCATIONOBSERVATION_H
