//===- IREntities.h - What IR2Vec counts ------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The entities of LLVM's IR that have a vector in an IR2Vec vocabulary: each
/// opcode, each kind of type, four kinds of operands and each predicate of a
/// comparison. They are numbered as LLVM's own ir2vec::Vocabulary numbers them.
///
/// This is LLVM's numbering once more because every operand of a module goes
/// through it: LLVM's is a call into another library each time, and makes its
/// names in a static buffer that two threads must not use at once.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_IR2VEC_IRENTITIES_H
#define MLBRIDGE_LLVM_IR2VEC_IRENTITIES_H

#include "llvm/Analysis/IR2Vec.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstrTypes.h"

#include <string>

namespace MLBridge {

/// How many there are; an entity is a number below it.
inline constexpr unsigned NumIREntities =
    llvm::ir2vec::Vocabulary::getCanonicalSize();

inline constexpr unsigned FirstOperandEntity =
    llvm::ir2vec::Vocabulary::MaxOpcodes +
    llvm::ir2vec::Vocabulary::MaxCanonicalTypeIDs;
inline constexpr unsigned FirstPredicateEntity =
    FirstOperandEntity + llvm::ir2vec::Vocabulary::MaxOperandKinds;

/// The parts of a vocabulary file, each a JSON object of names and vectors.
enum class EntitySection { Opcodes, Types, Arguments };
inline constexpr EntitySection EntitySections[] = {
    EntitySection::Opcodes, EntitySection::Types, EntitySection::Arguments};

/// "Opcodes", "Types" or "Arguments".
const char *entitySectionName(EntitySection Section);
/// The section that \p Entity is in.
EntitySection sectionOfEntity(unsigned Entity);
/// What a vocabulary file calls it: "GetElementPtr", "IntegerTy", "Variable",
/// "ICMP_slt".
std::string entityName(unsigned Entity);

inline unsigned entityOfOpcode(const llvm::Instruction &I) {
  return I.getOpcode() - 1;
}

inline unsigned entityOfType(const llvm::Type &Type) {
  return llvm::ir2vec::Vocabulary::getIndex(Type.getTypeID());
}

/// A function is one, else a pointer is one, else a constant, else a variable.
/// Without branches, since these would be mispredicted all the time.
inline unsigned entityOfOperand(const llvm::Value &Operand) {
  using Kind = llvm::ir2vec::Vocabulary::OperandKind;
  unsigned Found = static_cast<unsigned>(
      llvm::isa<llvm::Constant>(Operand) ? Kind::ConstantID : Kind::VariableID);
  Found = Operand.getType()->isPointerTy()
              ? static_cast<unsigned>(Kind::PointerID)
              : Found;
  Found = llvm::isa<llvm::Function>(Operand)
              ? static_cast<unsigned>(Kind::FunctionID)
              : Found;
  return FirstOperandEntity + Found;
}

inline unsigned entityOfPredicate(llvm::CmpInst::Predicate Predicate) {
  using llvm::CmpInst;
  return FirstPredicateEntity +
         (Predicate <= CmpInst::LAST_FCMP_PREDICATE
              ? Predicate - CmpInst::FIRST_FCMP_PREDICATE
              : Predicate - CmpInst::FIRST_ICMP_PREDICATE +
                    CmpInst::LAST_FCMP_PREDICATE -
                    CmpInst::FIRST_FCMP_PREDICATE + 1);
}

/// Whether \p I is no part of the program, and is not counted: LLVM's debug
/// intrinsics and pseudo probes, all of which are calls.
inline bool isWithoutEntities(const llvm::Instruction &I) {
  return I.getOpcode() == llvm::Instruction::Call && I.isDebugOrPseudoInst();
}

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_IR2VEC_IRENTITIES_H
