//===- AllocatorModel.cpp - A model that allocates registers --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Sends the observation of a function and checks the reply.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/AllocatorModel.h"

#include "Options.h"
#include "RegAlloc/AllocationContext.h"
#include "RegAlloc/HintsAndWeights.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/CodeGen/CalcSpillWeights.h"
#include "llvm/CodeGen/LiveIntervals.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/RegisterClassInfo.h"
#include "llvm/CodeGen/VirtRegMap.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace llvm;

namespace MLBridge {
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
    const bool Splits = of(Range.reg(), Given.Split) > 0 &&
                        choose(Range, Colours) == Colours.size();
    return Splits ? AllocationTask::Split : AllocationTask::Colour;
  }

  std::optional<std::size_t> selectColour(const LiveInterval &Range,
                                          ArrayRef<Colour> Colours,
                                          bool CanSpill) override {
    const std::size_t Choice = choose(Range, Colours);
    if (Choice != Colours.size())
      return Choice;
    return CanSpill && of(Range.reg(), Given.Spill) > 0 ? Spill : Leave;
  }

  std::optional<std::size_t>
  selectSplit(const LiveInterval &, ArrayRef<MachineInstr *> Uses) override {
    return Uses.size() / 2;
  }

private:
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

std::unique_ptr<AllocatorModel> AllocatorModel::open(StringRef Spec,
                                                     Module &M) {
  std::unique_ptr<ModelSession> Session =
      ModelSession::open("mlbridge-regalloc", Spec, M);
  if (!Session)
    return nullptr;
  return std::unique_ptr<AllocatorModel>(
      new AllocatorModel(M, std::move(Session)));
}

AllocatorModel::AllocatorModel(Module &M, std::unique_ptr<ModelSession> Opened)
    : ModuleName(M.getModuleIdentifier()), Session(std::move(Opened)) {}

AllocatorModel::~AllocatorModel() {
  if (!printStatistics())
    return;
  using Microseconds = std::chrono::duration<double, std::micro>;
  std::string Line =
      formatv("mlbridge-regalloc: {0}: requests={1} deferred={2} failed={3} "
              "ranges={4}",
              ModuleName, Requests, Deferred, Failed, Ranges);
  if (Ranges != 0)
    Line += formatv(" observe_us={0:F2} reply_us={1:F2}",
                    Microseconds(Observing).count() / double(Ranges),
                    Microseconds(Replying).count() / double(Ranges));
  printLine(Line);
}

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

Expected<Preferences> AllocatorModel::request(const MachineFunction &MF) {
  MLModelRunner &Runner = Session->runner();
  Runner.switchContext(ModuleName + ":" + MF.getName().str());
  FeatureSet Features;
  Observation.setFeatures(Features);
  Expected<Advice> Reply = Runner.ask(Features, AdviceSpec::any());
  if (!Reply)
    return Reply.takeError();
  Preferences Result;
  struct Part {
    std::string_view Name;
    std::vector<float> &Into;
    bool IsOptional;
  };
  for (const Part &P :
       {Part{"priority", Result.Priority, false},
        Part{"value", Result.Value, false}, Part{"spill", Result.Spill, true},
        Part{"split", Result.Split, true}}) {
    Expected<std::vector<float>> Values =
        read(*Reply, P.Name, Observation.size(), P.IsOptional);
    if (!Values)
      return Error(Values.code(),
                   Runner.describe() + ": " + Values.takeError().message());
    P.Into = std::move(*Values);
  }
  return Result;
}

/// Builds the observation. It needs spill weights and hints, which greedy
/// computes only later, so they are removed again.
void AllocatorModel::observe(const AllocationContext &C) {
  const HintsAndWeights Before(C);
  VirtRegAuxInfo(C.MF, C.LIS, C.VRM, C.Loops, C.Frequencies)
      .calculateSpillWeightsAndHints();
  RegisterClassInfo Classes;
  C.MRI.freezeReservedRegs();
  Classes.runOnMachineFunction(C.MF);
  Observation.build(C, Classes);
  Before.restore();
}

bool AllocatorModel::prepare(const AllocationContext &Context) {
  if (Session->hasFailed())
    return false;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point Begin = Clock::now();
  observe(Context);
  if (Observation.size() == 0)
    return false;
  const Clock::time_point Built = Clock::now();
  Expected<Preferences> Reply = request(Context.MF);
  Observing += Built - Begin;
  Replying += Clock::now() - Built;
  ++Requests;
  Ranges += Observation.size();
  if (Reply) {
    Given = std::move(*Reply);
    return true;
  }
  if (Reply.code() == ErrorCode::Deferred) {
    ++Deferred;
  } else {
    ++Failed;
    Session->fail(Reply.takeError());
  }
  return false;
}

std::unique_ptr<AllocationPolicy>
AllocatorModel::policy(const AllocationContext &Context) {
  if (const Function *F = &Context.MF.getFunction(); F != Last) {
    Last = F;
    HasPreferences = prepare(Context);
  }
  return HasPreferences ? makePreferences(Context, Observation, Given)
                        : nullptr;
}

} // namespace MLBridge
