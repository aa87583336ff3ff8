//===- MIR2Vec.cpp - Vectors for machine instructions ---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads vocabularies and writes the triplets from which they are trained.
///
//===----------------------------------------------------------------------===//

#include "RegAlloc/MIR2Vec.h"

#include "Support/AppendToFile.h"
#include "Support/ParseJSON.h"
#include "Support/ReadFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineInstr.h"
#include "llvm/CodeGen/MachineOperand.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace MLBridge {

/// LLVM's names of operands that are not registers.
static StringRef nameOf(MachineOperand::MachineOperandType Type) {
  switch (Type) {
  case MachineOperand::MO_Immediate:
    return "Immediate";
  case MachineOperand::MO_CImmediate:
    return "CImmediate";
  case MachineOperand::MO_FPImmediate:
    return "FPImmediate";
  case MachineOperand::MO_MachineBasicBlock:
    return "MBB";
  case MachineOperand::MO_FrameIndex:
    return "FrameIndex";
  case MachineOperand::MO_ConstantPoolIndex:
    return "ConstantPoolIndex";
  case MachineOperand::MO_TargetIndex:
    return "TargetIndex";
  case MachineOperand::MO_JumpTableIndex:
    return "JumpTableIndex";
  case MachineOperand::MO_ExternalSymbol:
    return "ExternalSymbol";
  case MachineOperand::MO_GlobalAddress:
    return "GlobalAddress";
  case MachineOperand::MO_BlockAddress:
    return "BlockAddress";
  case MachineOperand::MO_RegisterMask:
    return "RegisterMask";
  case MachineOperand::MO_RegisterLiveOut:
    return "RegisterLiveOut";
  case MachineOperand::MO_Metadata:
    return "Metadata";
  case MachineOperand::MO_MCSymbol:
    return "MCSymbol";
  case MachineOperand::MO_CFIIndex:
    return "CFIIndex";
  case MachineOperand::MO_IntrinsicID:
    return "IntrinsicID";
  case MachineOperand::MO_Predicate:
    return "Predicate";
  case MachineOperand::MO_ShuffleMask:
    return "ShuffleMask";
  case MachineOperand::MO_LaneMask:
    return "LaneMask";
  case MachineOperand::MO_Register:
  case MachineOperand::MO_DbgInstrRef:
    break;
  }
  return "";
}

/// Returns the letters and underscores with which \p Instruction begins,
/// without trailing underscores: `ADD` for `ADD32rr`. If there are no letters,
/// returns \p Instruction.
static StringRef opcodeName(StringRef Instruction) {
  const StringRef Prefix =
      Instruction.take_while([](char C) { return isAlpha(C) || C == '_'; })
          .rtrim('_');
  return Prefix.empty() ? Instruction : Prefix;
}

Expected<MIR2Vec> MIR2Vec::read(StringRef File, const MachineFunction &MF) {
  auto Fail = [&](ErrorCode Code, const Twine &Why) {
    return Error(Code, ("vocabulary " + File + ": " + Why).str());
  };
  constexpr std::uint64_t MaxBytes = std::uint64_t(1) << 28;
  auto Buffer = readFile(File, MaxBytes);
  if (!Buffer) {
    const Error Why = Buffer.takeError();
    return Fail(Why.code(), Why.message());
  }
  auto Parsed = parseJSON((*Buffer)->getBuffer());
  if (!Parsed)
    return Fail(ErrorCode::Malformed, toString(Parsed.takeError()));
  MIR2Vec Result;
  bool IsWrong = false;
  // Reads the vectors of a section. Name returns the name of an index.
  auto Read = [&](StringRef Section, unsigned Count,
                  function_ref<StringRef(unsigned)> Name) {
    const json::Object *Root = Parsed->getAsObject();
    const json::Object *Vectors = Root ? Root->getObject(Section) : nullptr;
    IsWrong |= Vectors == nullptr;
    std::vector<std::uint32_t> Offsets(Count, 0);
    StringMap<std::uint32_t> Known;
    for (unsigned I = 0; Vectors && I != Count; ++I) {
      const auto [Entry, IsNew] = Known.try_emplace(Name(I), 0);
      const json::Array *Values =
          IsNew ? Vectors->getArray(Entry->getKey()) : nullptr;
      if (Values) {
        if (Result.Dimension == 0)
          Result.Vectors.assign(Result.Dimension = Values->size(), 0);
        IsWrong |= Values->empty() || Values->size() != Result.Dimension;
        Entry->second = std::uint32_t(Result.Vectors.size());
        for (const json::Value &Value : *Values) {
          IsWrong |= !Value.getAsNumber();
          Result.Vectors.push_back(float(Value.getAsNumber().value_or(0)));
        }
      }
      Offsets[I] = Entry->second;
    }
    return Offsets;
  };
  const TargetInstrInfo &TII = *MF.getSubtarget().getInstrInfo();
  const TargetRegisterInfo &TRI = *MF.getSubtarget().getRegisterInfo();
  auto ClassName = [&](unsigned I) {
    return StringRef(TRI.getRegClassName(TRI.getRegClass(I)));
  };
  const unsigned Classes = TRI.getNumRegClasses();
  Result.At.Opcodes = Read("Opcodes", TII.getNumOpcodes(), [&](unsigned I) {
    return opcodeName(TII.getName(I));
  });
  Result.At.Operands =
      Read("CommonOperands", MachineOperand::MO_Last + 1, [](unsigned I) {
        return nameOf(MachineOperand::MachineOperandType(I));
      });
  Result.At.Physical = Read("PhysicalRegisters", Classes, ClassName);
  Result.At.Virtual = Read("VirtualRegisters", Classes, ClassName);
  if (IsWrong || Result.Dimension == 0)
    return Fail(ErrorCode::Malformed,
                "expected the objects 'Opcodes', 'CommonOperands', "
                "'PhysicalRegisters' and 'VirtualRegisters', with vectors of "
                "equal length for this target");
  return Result;
}

/// Returns the class of the register \p Operand, or null.
static const TargetRegisterClass *classOf(const MachineOperand &Operand,
                                          const MachineRegisterInfo &MRI,
                                          const TargetRegisterInfo &TRI) {
  const Register Reg = Operand.getReg();
  if (Reg.isPhysical())
    return TRI.getMinimalPhysRegClass(Reg);
  return Reg.isVirtual() ? MRI.getRegClassOrNull(Reg) : nullptr;
}

void MIR2Vec::add(const MachineInstr &MI, float *Into) const {
  const MachineRegisterInfo &MRI = MI.getMF()->getRegInfo();
  const TargetRegisterInfo &TRI = *MRI.getTargetRegisterInfo();
  auto Add = [&](std::uint32_t Offset) {
    if (Offset != 0)
      for (unsigned I = 0; I != Dimension; ++I)
        Into[I] += Vectors[Offset + I];
  };
  Add(At.Opcodes[MI.getOpcode()]);
  for (const MachineOperand &Operand : MI.operands()) {
    if (!Operand.isReg()) {
      Add(At.Operands[Operand.getType()]);
    } else if (const auto *Class = classOf(Operand, MRI, TRI)) {
      const bool IsPhysical = Operand.getReg().isPhysical();
      Add((IsPhysical ? At.Physical : At.Virtual)[Class->getID()]);
    }
  }
}

void MIR2VecTriplets::add(const MachineFunction &MF) {
  const MachineRegisterInfo &MRI = MF.getRegInfo();
  const TargetRegisterInfo &TRI = *MRI.getTargetRegisterInfo();
  const TargetInstrInfo &TII = *MF.getSubtarget().getInstrInfo();
  std::string Before;
  for (const MachineBasicBlock &Block : MF)
    for (const MachineInstr &MI : Block) {
      if (MI.isDebugInstr())
        continue;
      std::string Opcode =
          ("Opcode_" + opcodeName(TII.getName(MI.getOpcode()))).str();
      if (!Before.empty())
        ++Counts[{Before, "Next", Opcode}];
      for (const auto &[I, Operand] : enumerate(MI.operands())) {
        std::string Tail;
        if (!Operand.isReg())
          Tail = ("Operand_" + nameOf(Operand.getType())).str();
        else if (const auto *Class = classOf(Operand, MRI, TRI))
          Tail = (Operand.getReg().isPhysical() ? "PhyReg_" : "VirtReg_") +
                 std::string(TRI.getRegClassName(Class));
        else
          continue;
        ++Counts[{Opcode, formatv("Arg{0}", I), Tail}];
      }
      Before = std::move(Opcode);
    }
}

Error MIR2VecTriplets::appendTo(StringRef File) const {
  std::string Lines;
  raw_string_ostream Into(Lines);
  for (const auto &[Triplet, Count] : Counts) {
    const auto &[Head, Relation, Tail] = Triplet;
    Into << json::Value(json::Array{Head, Relation, Tail, Count}) << "\n";
  }
  return appendToFile(File, Lines);
}

} // namespace MLBridge
