//===- AdvisorFeatures.h - What advisors' models see ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Computes the features of LLVM's ML advisors for eviction and priority. Those
/// advisors themselves cannot be used, because their classes are private to
/// LLVM.
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

/// Greedy's stages of a live range, with the values of llvm::LiveRangeStage.
/// Greedy hides the stage, so ranges in the stages RS_Split2 and RS_Spill count
/// as Assign.
enum class VisibleStage : std::int64_t { Assign = 1, Split = 2, Done = 5 };

/// Returns the stage of \p Range. \p Default is greedy's own advisor, whose
/// priorities depend on the stage.
VisibleStage stageOf(const llvm::LiveInterval &Range,
                     const llvm::RegAllocPriorityAdvisor &Default);

/// The features of a priority.
struct PriorityFeatures {
  /// The 3 tensors of a request.
  static const std::vector<llvm::TensorSpec> &specs();
  /// The reply: the priority.
  static const llvm::TensorSpec &advice();
  static void set(const llvm::LiveInterval &Range, VisibleStage Stage,
                  ModelRunnerAdapter &Into);
};

/// The features of the evictions in one function.
class EvictionFeatures {
public:
  /// The number of positions. Each position but the last is a physical register
  /// in the allocation order.
  static constexpr std::size_t Positions = 33;
  /// The last position, which is the range that needs a register.
  static constexpr std::size_t Candidate = Positions - 1;

  /// The 21 tensors of a request.
  static const std::vector<llvm::TensorSpec> &specs();
  /// The reply: the position to evict, or Candidate to evict nothing.
  static const llvm::TensorSpec &advice();

  /// The live ranges that hold the register of a position, or the range that
  /// needs a register.
  struct Occupants {
    llvm::ArrayRef<const llvm::LiveInterval *> Ranges;
    bool IsHint = false;
    /// The number of ranges that lie in one block, as does the range that needs
    /// a register, and that have no other free register.
    std::int64_t Local = 0;
    VisibleStage Lowest = VisibleStage::Assign, Highest = VisibleStage::Assign;
  };

  /// All arguments must outlive this object.
  EvictionFeatures(const llvm::MachineFunction &MF,
                   const llvm::LiveIntervals &LIS, const llvm::VirtRegMap &VRM,
                   const llvm::MachineBlockFrequencyInfo &Frequencies,
                   const llvm::MachineLoopInfo &Loops);

  /// Starts the request of a decision: all positions are masked.
  void begin();
  void set(std::size_t Position, const Occupants &Of);
  /// Normalises the features and writes them to \p Into.
  void finish(ModelRunnerAdapter &Into);
  bool isSet(std::size_t Position) const {
    return Integers[Mask][Position] != 0;
  }

private:
  /// The indices of integer features, and of features that are divided by their
  /// largest value.
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
  /// The features in the order of LLVM's channel. `progress` follows them.
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
  /// The number of ranges that greedy has at first.
  float InitialRanges = 0;
  llvm::DenseMap<llvm::Register, Range> Known;
  std::array<std::array<std::int64_t, Positions>, NumIntegers> Integers{};
  std::array<std::array<float, Positions>, NumFloats> Floats{};
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_ADVISORFEATURES_H
