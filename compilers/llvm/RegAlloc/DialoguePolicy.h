//===- DialoguePolicy.h - A request for each decision -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// In a dialogue, four agents decide about a function, as in RL4ReAl (section
/// 4.3 of the paper). The agent `node` selects the next live range. The agent
/// `task` decides whether to colour or split this range. `colour` selects a
/// register, and `split` selects the point of a split.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_DIALOGUEPOLICY_H
#define MLBRIDGE_LLVM_REGALLOC_DIALOGUEPOLICY_H

#include "RegAlloc/AllocationObservation.h"
#include "RegAlloc/AllocationPolicy.h"

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/FeatureSet.h"

#include <array>
#include <memory>

namespace MLBridge {

/// The labels of the agents.
namespace agents {
inline constexpr std::string_view Node = "node", Task = "task",
                                  Colour = "colour", Split = "split";
} // namespace agents

/// The observation of an agent. These features have fixed shapes, and unused
/// rows are zero:
///
/// | agent | features | decision |
/// | --- | --- | --- |
/// | node | `ranges` float [8, 16]: four heaviest, four longest | an index |
/// | task | `range` float [16], `colours` float [32, 6] | 0 colour, 1 split |
/// | colour | the same | an index, 32 to spill, 33 to leave to greedy |
/// | split | `range` float [16], `points` float [16, 6] | an index |
///
/// Each agent also receives `action_mask`, float [choices], which is 1 where a
/// choice is legal, and three strings: `function`, `file` and `status`, which
/// is one of MLBridge::outcomes.
///
/// With a vocabulary of MIR2Vec of dimension d, there are two further features:
///
/// - `instructions` float [k, d]: a vector for each instruction that reads or
///   writes a live range, range by range, in the order of the code.
/// - `instruction_ends` int32 [8] or, for one range, [1]: the end index of each
///   live range's instructions. Unused rows have no instructions.
struct DialogueObservation {
  static constexpr std::size_t MaxRanges = 8, MaxColours = 32, MaxPoints = 16;
  static constexpr std::size_t SpillChoice = MaxColours;
  static constexpr std::size_t LeaveChoice = MaxColours + 1;
  static constexpr std::size_t ColourColumns = 6, PointColumns = 6;
  static constexpr std::size_t RangeColumns = AllocationObservation::Columns;

  std::array<float, MaxRanges * RangeColumns> Ranges;
  std::array<float, RangeColumns> Range;
  /// The columns: 1 if free, 1 for a hint, Colour::Cost / 4, log(1 + evicted
  /// weight), evicted ranges / 4, log(1 + own weight) - log(1 + evicted
  /// weight).
  std::array<float, MaxColours * ColourColumns> Colours;
  /// The columns: log(1 + block frequency), position in the range (0 to 1),
  /// loop depth / 4, whether the previous row has another block, whether the
  /// point is a loop, and whether it is a loop that uses the range.
  std::array<float, MaxPoints * PointColumns> Points;
  std::array<float, MaxColours + 2> Mask;
  llvm::ArrayRef<float> Instructions;
  std::array<std::int32_t, MaxRanges> InstructionEnds{};
  std::string_view Status = outcomes::None;

  /// Sets the features of \p Agent, which decides about \p Function. \p Into
  /// borrows them.
  void setFeatures(std::string_view Agent,
                   const AllocationObservation &Function,
                   FeatureSet &Into) const;
  static std::size_t choices(std::string_view Agent);
};

/// The agents of a dialogue: a model or a trainer.
class DialoguePartner {
public:
  virtual ~DialoguePartner() = default;
  /// Returns the decision of \p Agent, or std::nullopt to leave the rest of the
  /// function to greedy. The decision need not be legal.
  virtual std::optional<std::int64_t>
  decide(std::string_view Agent, const DialogueObservation &Observation) = 0;
  /// Reports an illegal decision. The rest of the function is left to greedy.
  virtual void refuse(Error Why) = 0;
};

/// Returns a policy whose decisions \p Partner makes. \p Observation describes
/// the function, and new ranges are added to it. All arguments must outlive the
/// policy.
std::unique_ptr<AllocationPolicy>
makeDialogue(const AllocationContext &Context,
             AllocationObservation &Observation, DialoguePartner &Partner);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_DIALOGUEPOLICY_H
