//===- MIR2Vec.h - Vectors for machine instructions -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// MIR2Vec describes a machine instruction by the sum of the vectors of its
/// opcode and of its operands. The vectors are in a vocabulary. LLVM's own
/// implementation is not used, because it needs 0.2 s to build its tables for
/// each function, and crashes if a physical register has no class, such as
/// x86's MXCSR.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_REGALLOC_MIR2VEC_H
#define MLBRIDGE_LLVM_REGALLOC_MIR2VEC_H

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace llvm {
class MachineFunction;
class MachineInstr;
class TargetInstrInfo;
class TargetRegisterInfo;
} // namespace llvm

namespace MLBridge {

/// The vectors of a vocabulary, as flat tables for one target. An entity
/// without a vector in the vocabulary has the zero vector.
class MIR2Vec {
public:
  /// Reads a vocabulary in LLVM's JSON format: the objects `Opcodes`,
  /// `CommonOperands`, `PhysicalRegisters` and `VirtualRegisters`, which map
  /// names to vectors of equal length. The letters before the first digit name
  /// an opcode, so `ADD32rr` and `ADD64ri` have the vector of `ADD`. Returns
  /// System if the file cannot be read, and Malformed if it has another format.
  static Expected<MIR2Vec> read(llvm::StringRef File,
                                const llvm::MachineFunction &MF);

  unsigned dimension() const { return Dimension; }
  /// Adds the vector of \p MI to \p Into, which has dimension() elements.
  void add(const llvm::MachineInstr &MI, float *Into) const;

private:
  /// The index in Vectors of the first element of each entity's vector.
  struct Tables {
    std::vector<std::uint32_t> Opcodes, Operands, Physical, Virtual;
  };

  unsigned Dimension = 0;
  /// All vectors. The first one is the zero vector.
  std::vector<float> Vectors;
  Tables At;
};

/// Counts of triplets in a module. A triplet relates an instruction to the next
/// instruction or to an operand. A vocabulary is trained on the triplets.
class MIR2VecTriplets {
public:
  void add(const llvm::MachineFunction &MF);
  /// Appends the triplets to \p File, a line of JSON for each:
  /// `[head, relation, tail, count]`. A head is an opcode. The relation is
  /// `Next` for the opcode of the following instruction, or `Arg` and the
  /// number of an operand. Entities have the prefixes `Opcode_`, `Operand_`,
  /// `PhyReg_` and `VirtReg_`.
  Error appendTo(llvm::StringRef File) const;

private:
  std::map<std::tuple<std::string, std::string, std::string>, std::uint64_t>
      Counts;
};

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_REGALLOC_MIR2VEC_H
