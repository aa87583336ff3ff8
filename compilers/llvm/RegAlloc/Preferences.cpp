//===- Preferences.cpp - A reply about all live ranges --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads and checks preferences, and makes decisions from them.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/Preferences.h"

#include "RegAlloc/AllocationContext.h"
#include "RegAlloc/AllocationObservation.h"
#include "RegAlloc/LiveRangeSplitter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/CodeGen/LiveInterval.h"
#include "llvm/CodeGen/LiveIntervals.h"
#include "llvm/CodeGen/MachineBlockFrequencyInfo.h"
#include "llvm/CodeGen/VirtRegMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace llvm;

namespace MLBridge {

/// Copies the tensor \p Name of \p Reply. If it is absent, the result is empty.
/// The tensor has an element for each of \p Ranges ranges. If \p Columns is not
/// 0, the tensor has a row of \p Columns elements for each range instead.
static Expected<std::vector<float>> read(const Advice &Reply,
                                         std::string_view Name,
                                         std::size_t Ranges,
                                         std::size_t Columns = 0) {
  const TensorView *Tensor = Reply.find(Name);
  if (!Tensor)
    return std::vector<float>();
  Expected<std::vector<float>> Found = Reply.get<std::vector<float>>(Name);
  if (!Found)
    return Found.takeError();
  if (Columns == 0 && Found->size() != Ranges)
    return Error(ErrorCode::SchemaMismatch,
                 formatv("advice '{0}': expected {1} elements, one for each "
                         "live range, found {2}",
                         std::string(Name), Ranges, Found->size()));
  // Compare the shape, because a transposed tensor has equally many elements.
  const Shape Rows{std::int64_t(Ranges), std::int64_t(Columns)};
  if (Columns != 0 && Tensor->Dims != Rows)
    return Error(ErrorCode::SchemaMismatch,
                 formatv("advice '{0}': expected float{1}, one row for each "
                         "live range, found {2}",
                         std::string(Name), Rows.str(), Tensor->typeStr()));
  if (!all_of(*Found, [](float Value) { return std::isfinite(Value); }))
    return Error(
        ErrorCode::Model,
        formatv("advice '{0}': expected finite numbers", std::string(Name)));
  return Found;
}

/// Selects the choice with the highest score for each range.
static Preferences ofLogits(const std::vector<float> &Logits) {
  const std::size_t Ranges = Logits.size() / Preferences::Choices;
  Preferences Result;
  for (std::vector<float> *Part : {&Result.Leave, &Result.Split, &Result.Spill})
    Part->resize(Ranges);
  for (std::size_t I = 0; I != Ranges; ++I) {
    const auto Row = Logits.begin() + I * Preferences::Choices;
    const auto Best = std::max_element(Row, Row + Preferences::Choices) - Row;
    Result.Leave[I] = Best == Preferences::LeaveToGreedy;
    Result.Split[I] = Best == Preferences::SplitRange;
    Result.Spill[I] = Best == Preferences::SpillRange;
  }
  return Result;
}

Expected<Preferences> Preferences::from(const Advice &Reply,
                                        std::size_t Ranges) {
  Expected<std::vector<float>> Logits = read(Reply, "logits", Ranges, Choices);
  if (!Logits)
    return Logits.takeError();
  if (!Logits->empty())
    return ofLogits(*Logits);
  Preferences Result;
  bool IsEmpty = true;
  for (auto [Name, Into] :
       {std::pair("priority", &Result.Priority),
        std::pair("value", &Result.Value), std::pair("leave", &Result.Leave),
        std::pair("split", &Result.Split), std::pair("spill", &Result.Spill)}) {
    Expected<std::vector<float>> Values = read(Reply, Name, Ranges);
    if (!Values)
      return Values.takeError();
    *Into = std::move(*Values);
    IsEmpty &= Into->empty();
  }
  if (IsEmpty && Ranges != 0)
    return Error(ErrorCode::SchemaMismatch,
                 "expected advice about live ranges: 'logits', or some of "
                 "'priority', 'value', 'leave', 'split' and 'spill'; found " +
                     Reply.str());
  return Result;
}

namespace {

class PreferencePolicy final : public AllocationPolicy {
public:
  PreferencePolicy(const AllocationContext &Context,
                   const AllocationObservation &Observation,
                   const Preferences &Given)
      : C(Context), Observation(Observation), Given(Given) {}

  std::optional<std::size_t>
  selectNode(ArrayRef<const LiveInterval *> Ready) override {
    // Break ties by the register's number, because the order of Ready varies.
    const auto *First =
        max_element(Ready, [&](const LiveInterval *A, const LiveInterval *B) {
          return std::pair(orWeight(*A, Given.Priority), B->reg().id()) <
                 std::pair(orWeight(*B, Given.Priority), A->reg().id());
        });
    return First - Ready.begin();
  }

  std::optional<AllocationTask> selectTask(const LiveInterval &Range,
                                           ArrayRef<Colour> Colours) override {
    const bool Splits = of(Range.reg(), Given.Leave) <= 0 &&
                        of(Range.reg(), Given.Split) > 0 &&
                        choose(Range, Colours) == Colours.size();
    return Splits ? AllocationTask::Split : AllocationTask::Colour;
  }

  std::optional<std::size_t> selectColour(const LiveInterval &Range,
                                          ArrayRef<Colour> Colours,
                                          bool CanSpill) override {
    if (of(Range.reg(), Given.Leave) > 0)
      return Leave;
    const std::size_t Choice = choose(Range, Colours);
    if (Choice != Colours.size())
      return Choice;
    return CanSpill && of(Range.reg(), Given.Spill) > 0 ? Spill : Leave;
  }

  std::optional<std::size_t> selectSplit(const LiveInterval &,
                                         ArrayRef<SplitPoint> Points) override {
    // Choose the hottest loop that uses the range, or else the middle use.
    std::size_t Best = Points.size();
    for (const auto &[I, Point] : enumerate(Points))
      if (Point.Loop && Point.HasOperands &&
          (Best == Points.size() ||
           frequency(*Points[Best].Block) < frequency(*Point.Block)))
        Best = I;
    if (Best != Points.size())
      return Best;
    // The uses follow the loops.
    const std::size_t Uses =
        count_if(Points, [](const SplitPoint &Point) { return Point.Use; });
    return Points.size() - 1 - Uses / 2;
  }

private:
  double frequency(const MachineBasicBlock &Block) const {
    return C.Frequencies.getBlockFreqRelativeToEntryBlock(&Block);
  }

  /// Returns the index of the first free colour, or else of the colour whose
  /// ranges have the lowest value. Returns the number of colours if no value is
  /// below the value of \p Range.
  std::size_t choose(const LiveInterval &Range,
                     ArrayRef<Colour> Colours) const {
    std::size_t Best = Colours.size();
    float Lowest = Range.isSpillable() ? orWeight(Range, Given.Value)
                                       : std::numeric_limits<float>::infinity();
    for (const auto &[I, Candidate] : enumerate(Colours)) {
      if (Candidate.Evicted.empty())
        return I;
      float Value = -std::numeric_limits<float>::infinity();
      for (Register Evicted : Candidate.Evicted)
        Value =
            std::max(Value, orWeight(C.LIS.getInterval(Evicted), Given.Value));
      if (Value < Lowest) {
        Lowest = Value;
        Best = I;
      }
    }
    return Best;
  }

  /// Returns the element for \p Range, or the range's spill weight if \p Values
  /// is empty.
  float orWeight(const LiveInterval &Range,
                 const std::vector<float> &Values) const {
    return Values.empty() ? Range.weight() : of(Range.reg(), Values);
  }

  /// Returns the element for \p Reg, or for the register from which \p Reg was
  /// split.
  float of(Register Reg, const std::vector<float> &Values) const {
    std::size_t Row = Observation.rowOf(Reg);
    if (Row == Observation.size())
      Row = Observation.rowOf(C.VRM.getOriginal(Reg));
    return Row < Values.size() ? Values[Row] : 0;
  }

  const AllocationContext &C;
  const AllocationObservation &Observation;
  const Preferences &Given;
};

} // namespace

std::unique_ptr<AllocationPolicy>
makePreferences(const AllocationContext &Context,
                const AllocationObservation &Observation,
                const Preferences &Given) {
  return std::make_unique<PreferencePolicy>(Context, Observation, Given);
}

} // namespace MLBridge
