//===- Preferences.cpp - A reply about all live ranges --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Checks preferences and decides by them.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/Preferences.h"

#include "RegAlloc/AllocationContext.h"
#include "RegAlloc/AllocationObservation.h"
#include "RegAlloc/LiveRangeSplitter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/CodeGen/LiveInterval.h"
#include "llvm/CodeGen/MachineBlockFrequencyInfo.h"
#include "llvm/CodeGen/VirtRegMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>

using namespace llvm;

namespace MLBridge {

/// Copies the tensor \p Name of \p Reply, which has an element for each of \p
/// Count ranges. If it is optional and absent, the result is empty.
static Expected<std::vector<float>> read(const Advice &Reply,
                                         std::string_view Name,
                                         std::size_t Count, bool IsOptional) {
  if (IsOptional && !Reply.find(Name))
    return std::vector<float>();
  Expected<std::vector<float>> Found = Reply.get<std::vector<float>>(Name);
  if (!Found)
    return Found.takeError();
  if (Found->size() != Count)
    return Error(ErrorCode::SchemaMismatch,
                 formatv("advice '{0}': expected {1} elements, one for each "
                         "live range, found {2}",
                         std::string(Name), Count, Found->size()));
  if (!all_of(*Found, [](float Value) { return std::isfinite(Value); }))
    return Error(
        ErrorCode::Model,
        formatv("advice '{0}': expected finite numbers", std::string(Name)));
  return Found;
}

Expected<Preferences> Preferences::from(const Advice &Reply,
                                        std::size_t Ranges) {
  Preferences Result;
  struct Part {
    std::string_view Name;
    std::vector<float> &Into;
    bool IsOptional;
  };
  for (const Part &P :
       {Part{"priority", Result.Priority, false},
        Part{"value", Result.Value, false}, Part{"leave", Result.Leave, true},
        Part{"split", Result.Split, true}, Part{"spill", Result.Spill, true}}) {
    Expected<std::vector<float>> Values =
        read(Reply, P.Name, Ranges, P.IsOptional);
    if (!Values)
      return Values.takeError();
    P.Into = std::move(*Values);
  }
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
    // Ready's order changes, so a tie is broken by the number of the register.
    const auto *First =
        max_element(Ready, [&](const LiveInterval *A, const LiveInterval *B) {
          return std::pair(of(A->reg(), Given.Priority), B->reg().id()) <
                 std::pair(of(B->reg(), Given.Priority), A->reg().id());
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
    // The hottest loop that uses the range, or else the use in the middle.
    std::size_t Best = Points.size();
    for (const auto &[I, Point] : enumerate(Points))
      if (Point.Loop && Point.HasOperands &&
          (Best == Points.size() ||
           frequency(*Points[Best].Block) < frequency(*Point.Block)))
        Best = I;
    return Best == Points.size() ? Best / 2 : Best;
  }

private:
  double frequency(const MachineBasicBlock &Block) const {
    return C.Frequencies.getBlockFreqRelativeToEntryBlock(&Block);
  }

  /// Returns the first free colour, or else the one whose ranges have the
  /// lowest value, or the number of colours if all values are too high.
  std::size_t choose(const LiveInterval &Range,
                     ArrayRef<Colour> Colours) const {
    std::size_t Best = Colours.size();
    float Lowest = Range.isSpillable() ? of(Range.reg(), Given.Value)
                                       : std::numeric_limits<float>::infinity();
    for (const auto &[I, Candidate] : enumerate(Colours)) {
      if (Candidate.Evicted.empty())
        return I;
      float Value = -std::numeric_limits<float>::infinity();
      for (Register Evicted : Candidate.Evicted)
        Value = std::max(Value, of(Evicted, Given.Value));
      if (Value < Lowest) {
        Lowest = Value;
        Best = I;
      }
    }
    return Best;
  }

  /// Returns the element for \p Reg, or for the register that \p Reg is a part
  /// of.
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
