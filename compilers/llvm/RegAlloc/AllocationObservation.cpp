//===- AllocationObservation.cpp - The features of a function -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Computes the features. To find interferences, visits the segments of all
/// live ranges in the order of their starts.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/AllocationObservation.h"

#include "RegAlloc/AllocationContext.h"
#include "RegAlloc/HintsAndWeights.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/CodeGen/CalcSpillWeights.h"
#include "llvm/CodeGen/LiveIntervals.h"
#include "llvm/CodeGen/MachineBlockFrequencyInfo.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/RegisterClassInfo.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/VirtRegMap.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/JSON.h"

#include <cmath>
#include <limits>

using namespace llvm;

namespace MLBridge {

/// The maximum number of ranges for which the set of pairs is a matrix of bits.
/// This matrix has at most 8 MiB.
static constexpr std::size_t MaxMatrix = 8192;

void AllocationObservation::build(const AllocationContext &Context,
                                  const RegisterClassInfo &Classes) {
  FunctionName = json::fixUTF8(Context.MF.getName());
  FileName =
      json::fixUTF8(Context.MF.getFunction().getParent()->getSourceFileName());
  addRows(Context);
  for (std::size_t Row = 0; Row != size(); ++Row) {
    describe(Context, *Registers[Row], &Matrix[Row * Columns]);
    at(Row, ClassSize) =
        float(Classes.getNumAllocatableRegs(ClassesUsed[ClassOf[Row]])) / 16;
  }
  findSharing(Context, Classes);
  findInterferences(Classes);
  writePairs();
}

void AllocationObservation::buildBefore(const AllocationContext &C) {
  const HintsAndWeights Before(C);
  VirtRegAuxInfo(C.MF, C.LIS, C.VRM, C.Loops, C.Frequencies)
      .calculateSpillWeightsAndHints();
  RegisterClassInfo Classes;
  C.MRI.freezeReservedRegs();
  Classes.runOnMachineFunction(C.MF);
  build(C, Classes);
  Before.restore();
}

void AllocationObservation::addRows(const AllocationContext &Context) {
  Registers.clear();
  Rows.clear();
  ClassOf.clear();
  ClassesUsed.clear();
  Weights.clear();
  Context.forEachRegister([&](Register Reg) {
    const LiveInterval &Range = Context.LIS.getInterval(Reg);
    Rows[Reg] = std::uint32_t(Registers.size());
    Registers.push_back(&Range);
    Weights.push_back(
        std::min(Range.weight(), std::numeric_limits<float>::max()));
    const TargetRegisterClass *Class = Context.MRI.getRegClass(Reg);
    const auto Known = find(ClassesUsed, Class);
    ClassOf.push_back(std::uint32_t(Known - ClassesUsed.begin()));
    if (Known == ClassesUsed.end())
      ClassesUsed.push_back(Class);
  });
  Matrix.assign(size() * Columns, 0);
  New.clear();
  NewInstructions.clear();
  Instructions.clear();
  InstructionEnds.clear();
}

Error AllocationObservation::addInstructions(const AllocationContext &C,
                                             StringRef Vocabulary) {
  if (Vocabulary.empty())
    return Error::success();
  if (!Vectors) {
    Expected<MIR2Vec> Read = MIR2Vec::read(Vocabulary, C.MF);
    if (!Read)
      return Read.takeError();
    Vectors = std::move(*Read);
  }
  const unsigned Dimension = Vectors->dimension();
  for (const LiveInterval *Range : Registers) {
    appendInstructions(C, *Range, Instructions);
    InstructionEnds.push_back(std::int32_t(Instructions.size() / Dimension));
  }
  return Error::success();
}

void AllocationObservation::appendInstructions(const AllocationContext &C,
                                               const LiveInterval &Range,
                                               std::vector<float> &Into) const {
  SmallVector<const MachineInstr *, 16> Found;
  // Skip duplicates, because an instruction may be visited repeatedly.
  for (const MachineInstr &MI : C.MRI.reg_nodbg_instructions(Range.reg()))
    if (!is_contained(Found, &MI))
      Found.push_back(&MI);
  sort(Found, [&](const MachineInstr *A, const MachineInstr *B) {
    return C.Indexes.getInstructionIndex(*A) <
           C.Indexes.getInstructionIndex(*B);
  });
  for (const MachineInstr *MI : Found) {
    Into.resize(Into.size() + dimension(), 0);
    Vectors->add(*MI, &Into[Into.size() - dimension()]);
  }
}

ArrayRef<float>
AllocationObservation::instructionsOf(const AllocationContext &Context,
                                      const LiveInterval &Range) {
  if (!Vectors)
    return {};
  if (const std::size_t Row = rowOf(Range.reg()); Row != size()) {
    const std::size_t Begin = Row == 0 ? 0 : InstructionEnds[Row - 1];
    return ArrayRef(Instructions)
        .slice(Begin * dimension(),
               (InstructionEnds[Row] - Begin) * dimension());
  }
  const auto [Entry, IsNew] = NewInstructions.try_emplace(Range.reg());
  if (IsNew)
    appendInstructions(Context, Range, Entry->second);
  return Entry->second;
}

/// Writes the columns that depend on the range alone.
void AllocationObservation::describe(const AllocationContext &C,
                                     const LiveInterval &Range,
                                     float *Into) const {
  const Register Reg = Range.reg();
  float OperandCount = 0, ReadSum = 0, WriteSum = 0, HottestBlock = 0;
  for (const MachineOperand &Operand : C.MRI.reg_nodbg_operands(Reg)) {
    const MachineBasicBlock *Block = Operand.getParent()->getParent();
    const float Frequency =
        float(C.Frequencies.getBlockFreqRelativeToEntryBlock(Block));
    OperandCount += 1;
    (Operand.isDef() ? WriteSum : ReadSum) += Frequency;
    HottestBlock = std::max(HottestBlock, Frequency);
  }
  const bool IsSpillable = Range.isSpillable();
  Into[Size] = std::log1p(float(Range.getSize()) / float(SlotIndex::InstrDist));
  Into[Weight] = IsSpillable ? std::log1p(Range.weight()) : 1;
  Into[Operands] = std::log1p(OperandCount);
  Into[Reads] = std::log1p(ReadSum);
  Into[Writes] = std::log1p(WriteSum);
  Into[Hottest] = std::log1p(HottestBlock);
  Into[Local] = !Range.empty() && C.LIS.intervalIsInOneMBB(Range);
  BitVector Usable;
  Into[CrossesCall] = C.LIS.checkRegMaskInterference(Range, Usable);
  Into[Spillable] = IsSpillable;
  Into[Hinted] = C.VRM.hasKnownPreference(Reg);
  Into[Remat] =
      VirtRegAuxInfo::isRematerializable(Range, C.LIS, C.VRM, C.MRI, C.TII);
  const SlotIndex First = C.Indexes.getZeroIndex();
  const auto Length = float(First.distance(C.Indexes.getLastIndex()));
  if (!Range.empty() && Length > 0)
    Into[Begin] = float(First.distance(Range.beginIndex())) / Length;
}

ArrayRef<float> AllocationObservation::row(const AllocationContext &Context,
                                           const LiveInterval &Range) {
  if (const std::size_t Row = rowOf(Range.reg()); Row != size())
    return ArrayRef(Matrix).slice(Row * Columns, Columns);
  const auto [Entry, IsNew] = New.try_emplace(Range.reg());
  std::array<float, Columns> &Row = Entry->second;
  if (IsNew) {
    Row.fill(0);
    const std::size_t Whole = rowOf(Context.VRM.getOriginal(Range.reg()));
    if (Whole != size())
      llvm::copy(ArrayRef(Matrix).slice(Whole * Columns, Columns), Row.begin());
    describe(Context, Range, Row.data());
  }
  return Row;
}

void AllocationObservation::findSharing(const AllocationContext &Context,
                                        const RegisterClassInfo &Classes) {
  Shares.clear();
  for (const TargetRegisterClass *A : ClassesUsed) {
    // Collect the register units of all registers of class A.
    BitVector Units(Context.TRI.getNumRegUnits());
    for (MCPhysReg Physical : Classes.getOrder(A))
      for (MCRegUnit Unit : Context.TRI.regunits(Physical))
        Units.set(static_cast<unsigned>(Unit));
    for (const TargetRegisterClass *B : ClassesUsed)
      Shares.push_back(any_of(Classes.getOrder(B), [&](MCPhysReg Physical) {
        return any_of(Context.TRI.regunits(Physical), [&](MCRegUnit Unit) {
          return Units.test(static_cast<unsigned>(Unit));
        });
      }));
  }
}

void AllocationObservation::addPair(std::uint32_t A, std::uint32_t B) {
  const auto [Low, High] = std::minmax(A, B);
  const std::uint64_t Pair = std::uint64_t(Low) << 32 | High;
  // Add each pair once, although two ranges may overlap in several segments.
  if (size() > MaxMatrix) {
    if (!KnownPairs.insert(Pair).second)
      return;
  } else {
    const unsigned Bit = unsigned(Low * size() + High);
    if (PairBits.test(Bit))
      return;
    PairBits.set(Bit);
  }
  Found.push_back(Pair);
}

void AllocationObservation::findInterferences(
    const RegisterClassInfo &Classes) {
  Segments.clear();
  Active.clear();
  Found.clear();
  KnownPairs.clear();
  PairBits.clear();
  if (size() <= MaxMatrix)
    PairBits.resize(unsigned(size() * size()));
  for (std::size_t Row = 0; Row != size(); ++Row)
    for (const LiveRange::Segment &S : *Registers[Row])
      Segments.push_back({S.start, S.end, std::uint32_t(Row)});
  sort(Segments, [](const Segment &A, const Segment &B) {
    return std::tie(A.Begin, A.Row) < std::tie(B.Begin, B.Row);
  });
  for (const Segment &New : Segments) {
    erase_if(Active, [&](const Segment &Old) { return Old.End <= New.Begin; });
    Competing.clear();
    for (const Segment &Other : Active)
      if (Other.Row != New.Row && compete(Other.Row, New.Row))
        Competing.push_back(Other.Row);
    Active.push_back(New);
    const unsigned Available = std::max(
        1U, Classes.getNumAllocatableRegs(ClassesUsed[ClassOf[New.Row]]));
    const float Here = float(Competing.size() + 1) / float(Available);
    float &AtStart = at(New.Row, PressureAtStart);
    AtStart = std::max(AtStart, Here);
    Competing.push_back(New.Row);
    for (std::uint32_t Row : Competing) {
      at(Row, Pressure) = std::max(at(Row, Pressure), Here);
      if (Row != New.Row)
        addPair(Row, New.Row);
    }
  }
}

/// Writes the pairs in ascending order, and the column of degrees.
void AllocationObservation::writePairs() {
  sort(Found);
  Pairs.resize(2 * Found.size());
  for (const auto &[I, Pair] : enumerate(Found)) {
    const auto Low = std::uint32_t(Pair >> 32), High = std::uint32_t(Pair);
    Pairs[2 * I] = std::int32_t(Low);
    Pairs[2 * I + 1] = std::int32_t(High);
    at(Low, Degree) += 1;
    at(High, Degree) += 1;
  }
  for (std::size_t Row = 0; Row != size(); ++Row)
    at(Row, Degree) = std::log1p(at(Row, Degree));
}

void AllocationObservation::setNames(FeatureSet &Into) const {
  Into.set("function", FunctionName);
  Into.set("file", FileName);
}

void AllocationObservation::setFeatures(FeatureSet &Into) const {
  setNames(Into);
  const auto Count = std::int64_t(size());
  Into.set("ranges", TensorRef(Matrix, {Count, std::int64_t(Columns)}));
  Into.set("spill_weights", Span<const float>(Weights));
  Into.set("interferences",
           TensorRef(Pairs, {std::int64_t(Pairs.size() / 2), 2}));
  if (InstructionEnds.empty())
    return;
  Into.set("instructions",
           TensorRef(Instructions,
                     {InstructionEnds.back(), std::int64_t(dimension())}));
  Into.set("instruction_ends", Span<const std::int32_t>(InstructionEnds));
}

} // namespace MLBridge
