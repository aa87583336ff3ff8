//===- DialoguePolicy.cpp - A request for each decision -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes the observations of the four agents and checks their decisions.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/DialoguePolicy.h"

#include "RegAlloc/AllocationContext.h"
#include "RegAlloc/LiveRangeSplitter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/CodeGen/LiveIntervals.h"
#include "llvm/CodeGen/MachineBlockFrequencyInfo.h"
#include "llvm/CodeGen/MachineLoopInfo.h"
#include "llvm/CodeGen/SlotIndexes.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <numeric>

using namespace llvm;

namespace MLBridge {

std::size_t DialogueObservation::choices(std::string_view Agent) {
  if (Agent == agents::Node)
    return MaxRanges;
  if (Agent == agents::Task)
    return 2;
  return Agent == agents::Colour ? MaxColours + 2 : MaxPoints;
}

void DialogueObservation::setFeatures(std::string_view Agent,
                                      const AllocationObservation &Function,
                                      FeatureSet &Into) const {
  auto Rows = [&](std::string_view Name, const auto &Data,
                  std::size_t Columns) {
    Into.set(Name, TensorRef(Data, {std::int64_t(Data.size() / Columns),
                                    std::int64_t(Columns)}));
  };
  if (Agent == agents::Node) {
    Rows("ranges", Ranges, RangeColumns);
  } else {
    Into.set("range", Span<const float>(Range.data(), Range.size()));
    if (Agent == agents::Split)
      Rows("points", Points, PointColumns);
    else
      Rows("colours", Colours, ColourColumns);
  }
  Into.set("action_mask", Span<const float>(Mask.data(), choices(Agent)));
  Function.setNames(Into);
  Into.set("status", Status);
  if (Function.dimension() == 0)
    return;
  const std::int64_t Dimension = Function.dimension();
  Into.set(
      "instructions",
      TensorRef(Instructions,
                {std::int64_t(Instructions.size()) / Dimension, Dimension}));
  const std::size_t Count = Agent == agents::Node ? MaxRanges : 1;
  Into.set("instruction_ends",
           Span<const std::int32_t>(InstructionEnds.data(), Count));
}

namespace {

class DialoguePolicy final : public AllocationPolicy {
public:
  DialoguePolicy(const AllocationContext &Context, AllocationObservation &Known,
                 DialoguePartner &Partner)
      : C(Context), Known(Known), Partner(Partner) {}

  std::optional<std::size_t>
  selectNode(ArrayRef<const LiveInterval *> Ready) override;
  std::optional<AllocationTask> selectTask(const LiveInterval &Range,
                                           ArrayRef<Colour> Colours) override;
  std::optional<std::size_t> selectColour(const LiveInterval &Range,
                                          ArrayRef<Colour> Colours,
                                          bool CanSpill) override;
  std::optional<std::size_t> selectSplit(const LiveInterval &Range,
                                         ArrayRef<SplitPoint> Points) override;
  void setOutcome(std::string_view Outcome) override {
    Observation.Status = Outcome;
  }

private:
  std::optional<std::size_t> decide(std::string_view Agent);
  void describe(const LiveInterval &Range);
  void describe(const LiveInterval &Range, ArrayRef<Colour> Colours);
  void describeInstructions(ArrayRef<const LiveInterval *> Ready,
                            std::size_t Count);

  const AllocationContext &C;
  AllocationObservation &Known;
  DialoguePartner &Partner;
  DialogueObservation Observation;
  /// The indices of the ready ranges, beginning with the ranges on offer.
  std::vector<std::size_t> Offered;
  /// The vectors of the instructions of all ranges on offer.
  std::vector<float> Instructions;
};

} // namespace

std::optional<std::size_t> DialoguePolicy::decide(std::string_view Agent) {
  const std::optional<std::int64_t> Reply = Partner.decide(Agent, Observation);
  if (!Reply)
    return std::nullopt;
  const auto Index = std::size_t(*Reply);
  if (*Reply >= 0 && Index < DialogueObservation::choices(Agent) &&
      Observation.Mask[Index] != 0)
    return Index;
  Partner.refuse(
      {ErrorCode::Model,
       formatv(
           "agent '{0}': expected a choice whose 'action_mask' is 1, found {1}",
           std::string(Agent), *Reply)});
  return std::nullopt;
}

std::optional<std::size_t>
DialoguePolicy::selectNode(ArrayRef<const LiveInterval *> Ready) {
  Offered.resize(Ready.size());
  std::iota(Offered.begin(), Offered.end(), std::size_t(0));
  const std::size_t Count =
      std::min(Ready.size(), DialogueObservation::MaxRanges);
  const std::size_t Heavy =
      std::min(Ready.size(), DialogueObservation::MaxRanges / 2);
  // Break ties by the register's number, because the order of Ready varies.
  auto SortBy = [&](std::size_t Begin, std::size_t End, auto Key) {
    std::partial_sort(Offered.begin() + Begin, Offered.begin() + End,
                      Offered.end(), [&](std::size_t A, std::size_t B) {
                        return std::pair(-Key(*Ready[A]),
                                         Ready[A]->reg().id()) <
                               std::pair(-Key(*Ready[B]), Ready[B]->reg().id());
                      });
  };
  SortBy(0, Heavy, [](const LiveInterval &Range) { return Range.weight(); });
  SortBy(Heavy, Count, [](const LiveInterval &Range) {
    // The spiller may have emptied a range that is no longer used.
    return Range.empty() ? 0 : Range.beginIndex().distance(Range.endIndex());
  });
  Observation.Ranges.fill(0);
  Observation.Mask.fill(0);
  for (std::size_t I = 0; I != Count; ++I) {
    llvm::copy(Known.row(C, *Ready[Offered[I]]),
               &Observation.Ranges[I * DialogueObservation::RangeColumns]);
    Observation.Mask[I] = 1;
  }
  describeInstructions(Ready, Count);
  const std::optional<std::size_t> Chosen = decide(agents::Node);
  if (!Chosen)
    return std::nullopt;
  return Offered[*Chosen];
}

/// Writes the vectors of the first \p Count ranges in Offered.
void DialoguePolicy::describeInstructions(ArrayRef<const LiveInterval *> Ready,
                                          std::size_t Count) {
  const std::size_t Dimension = Known.dimension();
  if (Dimension == 0)
    return;
  Instructions.clear();
  for (std::size_t I = 0; I != DialogueObservation::MaxRanges; ++I) {
    if (I < Count)
      append_range(Instructions, Known.instructionsOf(C, *Ready[Offered[I]]));
    Observation.InstructionEnds[I] =
        std::int32_t(Instructions.size() / Dimension);
  }
  Observation.Instructions = Instructions;
}

void DialoguePolicy::describe(const LiveInterval &Range) {
  llvm::copy(Known.row(C, Range), Observation.Range.begin());
  const std::size_t Dimension = Known.dimension();
  if (Dimension == 0)
    return;
  Observation.Instructions = Known.instructionsOf(C, Range);
  Observation.InstructionEnds[0] =
      std::int32_t(Observation.Instructions.size() / Dimension);
}

/// Writes the columns of \p Range and of its first MaxColours colours. The
/// agent cannot choose the remaining colours.
void DialoguePolicy::describe(const LiveInterval &Range,
                              ArrayRef<Colour> Colours) {
  describe(Range);
  Observation.Colours.fill(0);
  const float Own = std::log1p(std::min(Range.weight(), 1e30F));
  for (const auto &[I, Candidate] :
       enumerate(Colours.take_front(DialogueObservation::MaxColours))) {
    float *Row = &Observation.Colours[I * DialogueObservation::ColourColumns];
    const float Evicted = std::log1p(Candidate.EvictedWeight);
    Row[0] = Candidate.Evicted.empty();
    Row[1] = Candidate.IsHint;
    Row[2] = float(Candidate.Cost) / 4;
    Row[3] = Evicted;
    Row[4] = float(Candidate.Evicted.size()) / 4;
    Row[5] = Own - Evicted;
  }
}

std::optional<AllocationTask>
DialoguePolicy::selectTask(const LiveInterval &Range,
                           ArrayRef<Colour> Colours) {
  describe(Range, Colours);
  Observation.Mask.fill(0);
  Observation.Mask[0] = Observation.Mask[1] = 1;
  const std::optional<std::size_t> Chosen = decide(agents::Task);
  if (!Chosen)
    return std::nullopt;
  return *Chosen == 0 ? AllocationTask::Colour : AllocationTask::Split;
}

std::optional<std::size_t>
DialoguePolicy::selectColour(const LiveInterval &Range,
                             ArrayRef<Colour> Colours, bool CanSpill) {
  describe(Range, Colours);
  Observation.Mask.fill(0);
  const std::size_t Count =
      std::min(Colours.size(), DialogueObservation::MaxColours);
  std::fill_n(Observation.Mask.begin(), Count, 1.0F);
  Observation.Mask[DialogueObservation::SpillChoice] = CanSpill;
  Observation.Mask[DialogueObservation::LeaveChoice] = 1;
  const std::optional<std::size_t> Chosen = decide(agents::Colour);
  if (Chosen == DialogueObservation::SpillChoice)
    return Spill;
  if (Chosen == DialogueObservation::LeaveChoice)
    return Leave;
  return Chosen;
}

std::optional<std::size_t>
DialoguePolicy::selectSplit(const LiveInterval &Range,
                            ArrayRef<SplitPoint> Points) {
  describe(Range);
  Observation.Points.fill(0);
  Observation.Mask.fill(0);
  // If there are more points than rows, offer points at equal distances.
  const std::size_t Count =
      std::min(Points.size(), DialogueObservation::MaxPoints);
  auto IndexOf = [&](std::size_t Row) { return Row * Points.size() / Count; };
  const SlotIndex Begin = Range.beginIndex();
  const auto Length = float(std::max(1, Begin.distance(Range.endIndex())));
  const MachineBasicBlock *Before = nullptr;
  for (std::size_t I = 0; I != Count; ++I) {
    const SplitPoint &Point = Points[IndexOf(I)];
    const SlotIndex At = Point.Use ? C.Indexes.getInstructionIndex(*Point.Use)
                                   : C.Indexes.getMBBStartIdx(Point.Block);
    float *Row = &Observation.Points[I * DialogueObservation::PointColumns];
    Row[0] = std::log1p(
        float(C.Frequencies.getBlockFreqRelativeToEntryBlock(Point.Block)));
    Row[1] = float(Begin.distance(At)) / Length;
    Row[2] = float(C.Loops.getLoopDepth(Point.Block)) / 4;
    Row[3] = Point.Block != Before;
    Row[4] = Point.Loop != nullptr;
    Row[5] = Point.Loop && Point.HasOperands;
    Before = Point.Block;
    Observation.Mask[I] = 1;
  }
  const std::optional<std::size_t> Chosen = decide(agents::Split);
  if (!Chosen)
    return std::nullopt;
  return IndexOf(*Chosen);
}

std::unique_ptr<AllocationPolicy>
makeDialogue(const AllocationContext &Context,
             AllocationObservation &Observation, DialoguePartner &Partner) {
  return std::make_unique<DialoguePolicy>(Context, Observation, Partner);
}

} // namespace MLBridge
