//===- IREntities.h - The entities of IR that IR2Vec counts -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The entities of LLVM IR that have a vector in an IR2Vec vocabulary. Each
/// opcode, each kind of type, each of four kinds of operands and each
/// comparison predicate is an entity. An entity has the same index as in LLVM's
/// ir2vec::Vocabulary.
///
/// This file computes the indices itself, because they are needed for every
/// operand of a module. LLVM's functions would be slower, because each one is a
/// call into another library. LLVM's function for names is also not
/// thread-safe, because it returns a static buffer.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_IR2VEC_IRENTITIES_H
#define MLBRIDGE_LLVM_IR2VEC_IRENTITIES_H

#include "llvm/Analysis/IR2Vec.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstrTypes.h"

#include <string>

namespace MLBridge {

/// The number of entities. An entity is an index below this number.
inline constexpr unsigned NumIREntities =
    llvm::ir2vec::Vocabulary::getCanonicalSize();

inline constexpr unsigned FirstOperandEntity =
    llvm::ir2vec::Vocabulary::MaxOpcodes +
    llvm::ir2vec::Vocabulary::MaxCanonicalTypeIDs;
inline constexpr unsigned FirstPredicateEntity =
    FirstOperandEntity + llvm::ir2vec::Vocabulary::MaxOperandKinds;

/// The sections of a vocabulary file. Each section is a JSON object that maps
/// names to vectors.
enum class EntitySection { Opcodes, Types, Arguments };
inline constexpr EntitySection EntitySections[] = {
    EntitySection::Opcodes, EntitySection::Types, EntitySection::Arguments};

/// Returns "Opcodes", "Types" or "Arguments".
const char *entitySectionName(EntitySection Section);
EntitySection sectionOfEntity(unsigned Entity);
/// Returns the name of \p Entity in a vocabulary file, for example
/// "GetElementPtr", "IntegerTy", "Variable" or "ICMP_slt".
std::string entityName(unsigned Entity);

inline unsigned entityOfOpcode(const llvm::Instruction &I) {
  return I.getOpcode() - 1;
}

inline unsigned entityOfType(const llvm::Type &Type) {
  return llvm::ir2vec::Vocabulary::getIndex(Type.getTypeID());
}

/// Returns the first kind that fits the operand: function, pointer, constant or
/// variable. The code has no branches, because they would often be
/// mispredicted.
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

/// True if \p I is a debug intrinsic or a pseudo probe of LLVM. These calls are
/// not part of the program, so they are not counted.
inline bool isWithoutEntities(const llvm::Instruction &I) {
  return I.getOpcode() == llvm::Instruction::Call && I.isDebugOrPseudoInst();
}

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_IR2VEC_IRENTITIES_H
