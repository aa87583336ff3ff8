//===- RegisterAllocator.cpp - Allocates the registers of a function ------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Handles the live ranges in a queue until it is empty. Each range is split,
/// gets a physical register, is spilled, or is left to greedy. Evicted ranges,
/// and new ranges from splits and spills, are added to the queue.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/RegisterAllocator.h"

#include "RegAlloc/HintsAndWeights.h"

#include "llvm/CodeGen/LiveDebugVariables.h"
#include "llvm/CodeGen/LiveIntervals.h"
#include "llvm/CodeGen/LiveRegMatrix.h"
#include "llvm/CodeGen/LiveStacks.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/VirtRegMap.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace MLBridge {

/// The maximum number of splits that lead to a range.
static constexpr unsigned MaxSplits = 4;
/// The limits of the search that recolours ranges.
static constexpr unsigned MaxRecolouringDepth = 5;
static constexpr std::size_t MaxRecolouredRanges = 8;
/// The limit on evictions in a function, per live range at the start.
static constexpr std::uint64_t MaxEvictionsPerRange = 8;

bool canAllocateFor(const Triple &Target) {
  return Target.getArch() == Triple::x86_64 ||
         Target.getArch() == Triple::aarch64;
}

const char *whyNotDecided(const AllocationContext &Context) {
  const Triple &Target = Context.MF.getTarget().getTargetTriple();
  if (!Target.isAArch64() && !Target.isARM() && !Target.isThumb())
    return nullptr;
  const auto IsExclusive = [&](const MachineInstr &MI) {
    if (!MI.mayLoad())
      return false;
    StringRef Name = Context.TII.getName(MI.getOpcode());
    Name.consume_front("t2");
    return Name.starts_with("LDX") || Name.starts_with("LDAX") ||
           Name.starts_with("LDREX") || Name.starts_with("LDAEX");
  };
  for (const MachineBasicBlock &Block : Context.MF)
    if (any_of(Block, IsExclusive))
      return "a spill between its exclusive loads and stores could make an "
             "atomic operation endless";
  return nullptr;
}

const char *whyNotAllocatable(const AllocationContext &Context) {
  if (!canAllocateFor(Context.MF.getTarget().getTargetTriple()))
    return "its target is neither x86-64 nor aarch64";
  if (Context.MRI.subRegLivenessEnabled())
    return "it tracks the liveness of parts of registers";
  // Decline functions with AMX tiles, which another pass of LLVM allocates
  // first.
  bool HasTiles = false;
  Context.forEachRegister([&](Register Reg) {
    StringRef Class = Context.TRI.getRegClassName(Context.MRI.getRegClass(Reg));
    HasTiles |= Class.starts_with("TILE");
  });
  return HasTiles ? "it uses AMX tiles" : nullptr;
}

RegisterAllocator::RegisterAllocator(const AllocationContext &Context,
                                     AllocationPolicy &Policy)
    : C(Context), Policy(Policy),
      Weights(C.MF, C.LIS, C.VRM, C.Loops, C.Frequencies),
      Spiller(
          createInlineSpiller({C.LIS, C.Stacks, C.Dominators, C.Frequencies},
                              C.MF, C.VRM, Weights, &C.Matrix)),
      Splitter(C, Weights, *this) {}

RegisterAllocator::~RegisterAllocator() = default;

//===----------------------------------------------------------------------===//
// The queue
//===----------------------------------------------------------------------===//

void RegisterAllocator::enqueue(Register Reg) {
  LiveInterval &Range = C.LIS.getInterval(Reg);
  if (!Range.isSpillable()) {
    Urgent.push_back(Reg);
    return;
  }
  RangeState &State = States[Reg];
  if (State.ReadyIndex)
    return;
  Ready.push_back(&Range);
  State.ReadyIndex = Ready.size();
}

void RegisterAllocator::dequeue(Register Reg) {
  RangeState &State = States[Reg];
  if (!State.ReadyIndex)
    return;
  const LiveInterval *Last = Ready.pop_back_val();
  if (Last->reg() != Reg) {
    Ready[State.ReadyIndex - 1] = Last;
    States.find(Last->reg())->second.ReadyIndex = State.ReadyIndex;
  }
  States.find(Reg)->second.ReadyIndex = 0;
}

void RegisterAllocator::enqueueAll(ArrayRef<Register> Registers) {
  for (Register Reg : Registers) {
    if (!C.LIS.hasInterval(Reg))
      continue;
    if (C.MRI.reg_nodbg_empty(Reg)) {
      dequeue(Reg);
      C.LIS.removeInterval(Reg);
    } else {
      enqueue(Reg);
    }
  }
}

std::optional<Register> RegisterAllocator::next() {
  if (!Urgent.empty())
    return Urgent.pop_back_val();
  if (Ready.empty())
    return std::nullopt;
  ++Statistics.Decisions;
  const std::optional<std::size_t> Index = Policy.selectNode(Ready);
  if (!Index)
    return std::nullopt;
  const Register Reg = Ready[*Index]->reg();
  dequeue(Reg);
  return Reg;
}

/// LLVM calls this function before it erases \p Reg, which is no longer used.
bool RegisterAllocator::LRE_CanEraseVirtReg(Register Reg) {
  LiveInterval &Range = C.LIS.getInterval(Reg);
  if (C.VRM.hasPhys(Reg)) {
    C.Matrix.unassign(Range);
    return true;
  }
  // Only empty the range, because the queue may refer to it.
  Range.clear();
  return false;
}

void RegisterAllocator::LRE_WillShrinkVirtReg(Register Reg) {
  if (!C.VRM.hasPhys(Reg))
    return;
  C.Matrix.unassign(C.LIS.getInterval(Reg));
  enqueue(Reg);
}

//===----------------------------------------------------------------------===//
// Colours
//===----------------------------------------------------------------------===//

/// Returns the ranges that interfere with \p Range in \p Physical.
SmallVector<Register, 8>
RegisterAllocator::interfering(const LiveInterval &Range, MCRegister Physical) {
  SmallVector<Register, 8> Result;
  for (MCRegUnit Unit : C.TRI.regunits(Physical))
    for (const LiveInterval *Other :
         C.Matrix.query(Range, Unit).interferingVRegs())
      if (!is_contained(Result, Other->reg()))
        Result.push_back(Other->reg());
  return Result;
}

bool RegisterAllocator::findEvicted(const LiveInterval &Range, Colour &Colour) {
  const bool BySpill = Policy.evictionKind() == EvictionKind::Spill;
  const unsigned Cascade = States.lookup(Range.reg()).Cascade;
  for (Register Reg : interfering(Range, Colour.Register)) {
    const LiveInterval &Other = C.LIS.getInterval(Reg);
    const bool IsBelow = BySpill || !Range.isSpillable() || Cascade == 0 ||
                         States.lookup(Reg).Cascade < Cascade;
    if (!Other.isSpillable() || !IsBelow)
      return false;
    Colour.EvictedWeight = std::max(Colour.EvictedWeight, Other.weight());
    Colour.Evicted.push_back(Reg);
  }
  return true;
}

SmallVector<Colour, 32>
RegisterAllocator::coloursOf(const LiveInterval &Range) {
  C.Matrix.invalidateVirtRegs();
  const ArrayRef<MCPhysReg> Order =
      Classes.getOrder(C.MRI.getRegClass(Range.reg()));
  SmallVector<MCPhysReg, 16> Hints;
  // If Hard is true, the range can have only the registers in Hints.
  const bool Hard = C.TRI.getRegAllocationHints(Range.reg(), Order, Hints, C.MF,
                                                &C.VRM, &C.Matrix);
  const ArrayRef<uint8_t> Costs = C.TRI.getRegisterCosts(C.MF);
  SmallVector<Colour, 32> Colours;
  SmallVector<Colour, 32> Taken;
  auto Add = [&](MCPhysReg Physical, bool IsHint) {
    const LiveRegMatrix::InterferenceKind Kind =
        C.Matrix.checkInterference(Range, Physical);
    if (Kind > LiveRegMatrix::IK_VirtReg)
      return;
    Colour Found;
    Found.Register = Physical;
    Found.IsHint = IsHint;
    Found.Cost = Costs[Physical];
    (Kind == LiveRegMatrix::IK_Free ? Colours : Taken).push_back(Found);
  };
  for (MCPhysReg Physical : Hints)
    Add(Physical, true);
  if (!Hard)
    for (MCPhysReg Physical : Order)
      if (!is_contained(Hints, Physical))
        Add(Physical, false);

  const bool CanEvict = Statistics.Evicted < MaxEvictions ||
                        Policy.evictionKind() == EvictionKind::Spill ||
                        !Range.isSpillable();
  if (CanEvict && (Colours.empty() || Policy.evictsDespiteFreeColours()))
    for (Colour &Candidate : Taken)
      if (findEvicted(Range, Candidate))
        Colours.push_back(std::move(Candidate));
  return Colours;
}

//===----------------------------------------------------------------------===//
// Assigning, splitting and spilling
//===----------------------------------------------------------------------===//

/// Spills \p Reg, which has no physical register.
void RegisterAllocator::spill(Register Reg) {
  SmallVector<Register, 8> Created;
  LiveRangeEdit Edit(&C.LIS.getInterval(Reg), Created, C.MF, C.LIS, &C.VRM,
                     this, &DeadRematerializations);
  Spiller->spill(Edit);
  C.DebugVariables.splitRegister(Reg, Edit.regs(), C.LIS);
  ++Statistics.Spilled;
  enqueueAll(Created);
}

/// Assigns \p Chosen to \p Range after evicting other ranges. Returns false if
/// \p Range must be handled again, because spilling the evicted ranges has
/// changed it.
bool RegisterAllocator::assign(LiveInterval &Range, const Colour &Chosen) {
  const Register Reg = Range.reg();
  const bool BySpill = Policy.evictionKind() == EvictionKind::Spill;
  if (!BySpill && !Chosen.Evicted.empty() && !States[Reg].Cascade)
    States[Reg].Cascade = NextCascade++;
  const unsigned Cascade = States[Reg].Cascade;
  for (Register Evicted : Chosen.Evicted) {
    // Spilling one range may have removed another range.
    if (!C.LIS.hasInterval(Evicted) || !C.VRM.hasPhys(Evicted))
      continue;
    C.Matrix.unassign(C.LIS.getInterval(Evicted));
    ++Statistics.Evicted;
    if (BySpill) {
      spill(Evicted);
    } else {
      States[Evicted].Cascade = std::max(States[Evicted].Cascade, Cascade);
      enqueue(Evicted);
    }
  }
  if (!C.LIS.hasInterval(Reg))
    return true;
  C.Matrix.invalidateVirtRegs();
  if (C.MRI.reg_nodbg_empty(Reg) ||
      C.Matrix.checkInterference(C.LIS.getInterval(Reg), Chosen.Register) !=
          LiveRegMatrix::IK_Free)
    return false;
  C.Matrix.assign(C.LIS.getInterval(Reg), Chosen.Register);
  ++Statistics.Assigned;
  return true;
}

std::optional<bool> RegisterAllocator::trySplit(LiveInterval &Range,
                                                ArrayRef<Colour> Colours) {
  const Register Reg = Range.reg();
  const unsigned Splits = States.lookup(Reg).Splits;
  if (!Policy.splits() || !Range.isSpillable() || Splits >= MaxSplits)
    return false;
  const SmallVector<SplitPoint, 8> Points = Splitter.points(Range);
  if (Points.empty())
    return false;
  ++Statistics.Decisions;
  const std::optional<AllocationTask> Task = Policy.selectTask(Range, Colours);
  if (!Task)
    return std::nullopt;
  if (*Task != AllocationTask::Split)
    return false;
  ++Statistics.Decisions;
  const std::optional<std::size_t> Chosen = Policy.selectSplit(Range, Points);
  if (!Chosen)
    return std::nullopt;
  const SmallVector<Register, 4> Parts = Splitter.split(Reg, Points[*Chosen]);
  Policy.setOutcome(Parts.empty() ? outcomes::Unsplit : outcomes::Split);
  if (Parts.empty())
    return false;
  ++Statistics.Split;
  for (Register Part : Parts) {
    States[Part].Splits = Splits + 1;
    enqueue(Part);
  }
  return true;
}

bool RegisterAllocator::allocate(LiveInterval &Range) {
  const SmallVector<Colour, 32> Colours = coloursOf(Range);
  const std::optional<bool> IsSplit = trySplit(Range, Colours);
  if (!IsSplit)
    return false;
  if (*IsSplit)
    return true;

  std::size_t Choice = AllocationPolicy::Spill;
  if (!Colours.empty() || Range.isSpillable()) {
    ++Statistics.Decisions;
    const std::optional<std::size_t> Chosen =
        Policy.selectColour(Range, Colours, Range.isSpillable());
    if (!Chosen)
      return false;
    Choice = *Chosen;
  }
  Policy.setOutcome(applyColour(Range, Colours, Choice));
  return true;
}

std::string_view RegisterAllocator::applyColour(LiveInterval &Range,
                                                ArrayRef<Colour> Colours,
                                                std::size_t Choice) {
  const Register Reg = Range.reg();
  if (Choice == AllocationPolicy::Leave)
    return outcomes::Left;
  if (Choice == AllocationPolicy::Spill) {
    if (!Range.isSpillable())
      return recolour(Range) ? outcomes::Recoloured : outcomes::Left;
    spill(Reg);
    return outcomes::Spilled;
  }
  const bool Evicts = !Colours[Choice].Evicted.empty();
  if (assign(Range, Colours[Choice]))
    return Evicts ? outcomes::Evicting : outcomes::Assigned;
  enqueueAll(Reg);
  return outcomes::Requeued;
}

//===----------------------------------------------------------------------===//
// Recolouring
//===----------------------------------------------------------------------===//

/// Assigns \p To to \p Range. If \p To is null, leaves \p Range without a
/// register. Records the move.
void RegisterAllocator::move(LiveInterval &Range, MCRegister To) {
  const Register Reg = Range.reg();
  Moves.push_back({&Range, C.VRM.getPhys(Reg)});
  if (C.VRM.hasPhys(Reg))
    C.Matrix.unassign(Range);
  C.Matrix.invalidateVirtRegs();
  if (To)
    C.Matrix.assign(Range, To);
}

/// Undoes all moves except the first \p Count, in reverse order.
void RegisterAllocator::undoMoves(std::size_t Count) {
  while (Moves.size() > Count) {
    const auto [Range, Before] = Moves.pop_back_val();
    if (C.VRM.hasPhys(Range->reg()))
      C.Matrix.unassign(*Range);
    if (Before)
      C.Matrix.assign(*Range, Before);
  }
  C.Matrix.invalidateVirtRegs();
}

bool RegisterAllocator::recolour(LiveInterval &Range) {
  Moves.clear();
  SmallVector<Register, 8> Fixed;
  if (!recolour(Range, Fixed))
    return false;
  ++Statistics.Recoloured;
  for (const auto &[Moved, Before] : Moves)
    if (!C.VRM.hasPhys(Moved->reg()))
      enqueue(Moved->reg());
  return true;
}

bool RegisterAllocator::recolour(LiveInterval &Range,
                                 SmallVectorImpl<Register> &Fixed) {
  const ArrayRef<MCPhysReg> Order =
      Classes.getOrder(C.MRI.getRegClass(Range.reg()));
  C.Matrix.invalidateVirtRegs();
  for (MCPhysReg Physical : Order)
    if (C.Matrix.checkInterference(Range, Physical) == LiveRegMatrix::IK_Free) {
      move(Range, Physical);
      return true;
    }
  if (Fixed.size() == MaxRecolouringDepth)
    return false;

  Fixed.push_back(Range.reg());
  for (MCPhysReg Physical : Order) {
    if (C.Matrix.checkInterference(Range, Physical) > LiveRegMatrix::IK_VirtReg)
      continue;
    const SmallVector<Register, 8> Others = interfering(Range, Physical);
    if (Others.size() > MaxRecolouredRanges ||
        any_of(Others, [&](Register R) { return is_contained(Fixed, R); }))
      continue;
    const std::size_t Before = Moves.size();
    for (Register Other : Others)
      move(C.LIS.getInterval(Other), MCRegister());
    move(Range, Physical);
    if (all_of(Others, [&](Register Other) {
          LiveInterval &Moved = C.LIS.getInterval(Other);
          return Moved.isSpillable() || recolour(Moved, Fixed);
        })) {
      Fixed.pop_back();
      return true;
    }
    undoMoves(Before);
  }
  Fixed.pop_back();
  return false;
}

//===----------------------------------------------------------------------===//
// The whole function
//===----------------------------------------------------------------------===//

/// Removes or moves stores to the stack. During this step, LLVM's spiller
/// erases and shrinks ranges without updating the matrix, so the matrix is
/// empty.
void RegisterAllocator::optimizeSpills() {
  const auto ForEachAssigned = [&](function_ref<void(LiveInterval &)> Visit) {
    C.forEachRegister([&](Register Reg) {
      if (C.VRM.hasPhys(Reg))
        Visit(C.LIS.getInterval(Reg));
    });
  };
  // Keep the registers in VirtRegMap, because the spiller gives the register of
  // a range to the ranges that it splits off.
  ForEachAssigned([&](LiveInterval &Range) {
    const MCRegister Physical = C.VRM.getPhys(Range.reg());
    C.Matrix.unassign(Range);
    C.VRM.assignVirt2Phys(Range.reg(), Physical);
  });
  Spiller->postOptimization();
  ForEachAssigned([&](LiveInterval &Range) {
    const MCRegister Physical = C.VRM.getPhys(Range.reg());
    C.VRM.clearVirt(Range.reg());
    C.Matrix.assign(Range, Physical);
  });
}

/// Counts the ranges for greedy. If there are any, also unassigns the highest
/// virtual register, because greedy's table of ranges ends at the highest
/// register without a physical register, whereas greedy's evictions also read
/// the entries of assigned registers.
void RegisterAllocator::leaveRest() {
  Register Highest;
  C.forEachRegister([&](Register Reg) {
    if (!C.VRM.hasPhys(Reg))
      ++Statistics.Left;
    Highest = Reg;
  });
  if (Statistics.Left == 0 || !C.VRM.hasPhys(Highest))
    return;
  C.Matrix.unassign(C.LIS.getInterval(Highest));
  ++Statistics.Left;
}

AllocationStatistics RegisterAllocator::run() {
  const HintsAndWeights Before(C);
  C.MRI.freezeReservedRegs();
  Classes.runOnMachineFunction(C.MF);
  Weights.calculateSpillWeightsAndHints();
  C.forEachRegister([&](Register Reg) {
    forbidSpillOfTerminatorValues(C, C.LIS.getInterval(Reg));
    enqueue(Reg);
  });
  MaxEvictions = MaxEvictionsPerRange * Ready.size();

  while (const std::optional<Register> Reg = next()) {
    if (!C.LIS.hasInterval(*Reg))
      continue;
    if (C.MRI.reg_nodbg_empty(*Reg))
      C.LIS.removeInterval(*Reg);
    else if (!C.VRM.hasPhys(*Reg) && !allocate(C.LIS.getInterval(*Reg)))
      break;
  }

  if (Statistics.Spilled == 0 && Statistics.Split == 0)
    Before.restore();
  if (Statistics.Spilled != 0)
    optimizeSpills();
  for (MachineInstr *Dead : DeadRematerializations) {
    C.LIS.RemoveMachineInstrFromMaps(*Dead);
    Dead->eraseFromParent();
  }
  leaveRest();
  return Statistics;
}

double costWithFreeColours(const AllocationContext &Context) {
  std::unique_ptr<AllocationPolicy> Policy = makeFreeColours();
  const AllocationStatistics Found = RegisterAllocator(Context, *Policy).run();
  double Cost = 0;
  Context.forEachRegister([&](Register Reg) {
    if (Context.VRM.hasPhys(Reg)) {
      Context.Matrix.unassign(Context.LIS.getInterval(Reg));
      return;
    }
    for (const MachineInstr &MI : Context.MRI.reg_nodbg_instructions(Reg)) {
      const auto [Reads, Writes] = MI.readsWritesVirtualRegister(Reg);
      Cost += LiveIntervals::getSpillWeight(Writes, Reads, &Context.Frequencies,
                                            MI);
    }
  });
  Context.Matrix.invalidateVirtRegs();
  return Found.Left == 0 ? 0 : Cost;
}

} // namespace MLBridge
