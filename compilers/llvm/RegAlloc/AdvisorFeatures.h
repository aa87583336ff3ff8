//===- AdvisorFeatures.h - Features for greedy's advisors -------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Computes the same features as LLVM's ML advisors for eviction and priority.
/// LLVM's advisors cannot be used, because their classes are private to LLVM.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_ADVISORFEATURES_H
#define MLBRIDGE_LLVM_REGALLOC_ADVISORFEATURES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/TensorSpec.h"
#include "llvm/CodeGen/Register.h"
#include "llvm/CodeGen/SlotIndexes.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace llvm {
class LiveInterval;
class LiveIntervals;
class MachineBlockFrequencyInfo;
class MachineFunction;
class MachineLoopInfo;
class RegAllocPriorityAdvisor;
class VirtRegMap;
} // namespace llvm

namespace MLBridge {

class ModelRunnerAdapter;

/// Greedy hides the stage of a live range, but some stages can be inferred.
/// Each has its value in llvm::LiveRangeStage. The stages RS_Split2 and
/// RS_Spill count as Assign.
enum class VisibleStage : std::int64_t { Assign = 1, Split = 2, Done = 5 };

/// Returns the stage of \p Range, inferred from the priority that greedy's own
/// advisor \p Default returns.
VisibleStage stageOf(const llvm::LiveInterval &Range,
                     const llvm::RegAllocPriorityAdvisor &Default);

/// The features of a request for a live range's priority.
struct PriorityFeatures {
  /// The specs of the 3 tensors of a request.
  static const std::vector<llvm::TensorSpec> &specs();
  /// The spec of the reply, which is the priority.
  static const llvm::TensorSpec &advice();
  static void set(const llvm::LiveInterval &Range, VisibleStage Stage,
                  ModelRunnerAdapter &Into);
};

/// The features of the requests for evictions in one function.
class EvictionFeatures {
public:
  /// The number of positions. Each position except the last stands for a
  /// physical register, in the allocation order.
  static constexpr std::size_t Positions = 33;
  /// The last position, which stands for the range that needs a register.
  static constexpr std::size_t Candidate = Positions - 1;

  /// The specs of the 21 tensors of a request.
  static const std::vector<llvm::TensorSpec> &specs();
  /// The spec of the reply: the position to evict, or Candidate to evict
  /// nothing.
  static const llvm::TensorSpec &advice();

  /// The live ranges that occupy the register of a position, or the range that
  /// needs a register.
  struct Occupants {
    llvm::ArrayRef<const llvm::LiveInterval *> Ranges;
    bool IsHint = false;
    /// The number of ranges that lie in one block and have no other free
    /// register. 0 if the range that needs a register is not in one block.
    std::int64_t Local = 0;
    VisibleStage Lowest = VisibleStage::Assign, Highest = VisibleStage::Assign;
  };

  /// All arguments must outlive this object.
  EvictionFeatures(const llvm::MachineFunction &MF,
                   const llvm::LiveIntervals &LIS, const llvm::VirtRegMap &VRM,
                   const llvm::MachineBlockFrequencyInfo &Frequencies,
                   const llvm::MachineLoopInfo &Loops);

  /// Begins a request in which all positions are masked.
  void begin();
  void set(std::size_t Position, const Occupants &Of);
  /// Normalises the features and writes them to \p Into.
  void finish(ModelRunnerAdapter &Into);
  bool isSet(std::size_t Position) const {
    return Integers[Mask][Position] != 0;
  }

private:
  /// The indices of integer features, and of float features. finish() divides
  /// each float feature by its largest value.
  enum Integer { Mask, IsFree, IsHint, IsLocal, MaxStage, MinStage };
  enum Float {
    Urgent,
    BrokenHints,
    Rematerializable,
    DefsAndUses,
    Reads,
    Writes,
    ReadWrites,
    IndVars,
    Hints,
    StartFrequency,
    EndFrequency,
    HottestFrequency,
    Size,
    Density
  };
  static constexpr std::size_t NumIntegers = MinStage + 1;
  static constexpr std::size_t NumFloats = Density + 1;
  /// A tensor of a request: its name and its index in Integers or Floats.
  struct Feature {
    const char *Name;
    bool IsInteger;
    unsigned Index;
    constexpr Feature(const char *Name, Integer I)
        : Name(Name), IsInteger(true), Index(I) {}
    constexpr Feature(const char *Name, Float F)
        : Name(Name), IsInteger(false), Index(F) {}
  };
  /// The features in the order of LLVM's interactive channel, without the last
  /// feature, `progress`.
  static const std::array<Feature, NumIntegers + NumFloats> Features;

  /// Sums over the instructions of a live range, weighted by the frequencies of
  /// their blocks.
  struct Range {
    double Reads = 0, Writes = 0, ReadWrites = 0, IndVars = 0, Hints = 0;
    std::int64_t DefsAndUses = 0;
    float Hottest = 0;
    bool IsRematerializable = false;
  };
  const Range &of(const llvm::LiveInterval &Interval);
  float frequencyAt(llvm::SlotIndex Index) const;
  void setExtent(std::size_t Position, const Occupants &Of);

  const llvm::MachineFunction &MF;
  const llvm::LiveIntervals &LIS;
  const llvm::VirtRegMap &VRM;
  const llvm::MachineBlockFrequencyInfo &Frequencies;
  const llvm::MachineLoopInfo &Loops;
  /// The number of live ranges when greedy starts.
  float InitialRanges = 0;
  llvm::DenseMap<llvm::Register, Range> Known;
  std::array<std::array<std::int64_t, Positions>, NumIntegers> Integers{};
  std::array<std::array<float, Positions>, NumFloats> Floats{};
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ADVISORFEATURES_H
