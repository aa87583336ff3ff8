//===- IREntities.h - The entities of IR that IR2Vec counts -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The entities of LLVM IR with a vector in IR2Vec vocabularies: each opcode,
/// each kind of type, four kinds of operands and each comparison predicate.
/// Their numbers are those of LLVM's ir2vec::Vocabulary.
///
/// LLVM's numbering is duplicated here because it is needed for every operand
/// of a module: LLVM's functions are calls into another library, and return
/// names in a static buffer, which is not thread-safe.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_IR2VEC_IRENTITIES_H
#define MLBRIDGE_LLVM_IR2VEC_IRENTITIES_H

#include "llvm/Analysis/IR2Vec.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstrTypes.h"

#include <string>

namespace MLBridge {

/// The number of entities; entities are smaller numbers.
inline constexpr unsigned NumIREntities =
    llvm::ir2vec::Vocabulary::getCanonicalSize();

inline constexpr unsigned FirstOperandEntity =
    llvm::ir2vec::Vocabulary::MaxOpcodes +
    llvm::ir2vec::Vocabulary::MaxCanonicalTypeIDs;
inline constexpr unsigned FirstPredicateEntity =
    FirstOperandEntity + llvm::ir2vec::Vocabulary::MaxOperandKinds;

/// The sections of a vocabulary file, each a JSON object of names and vectors.
enum class EntitySection { Opcodes, Types, Arguments };
inline constexpr EntitySection EntitySections[] = {
    EntitySection::Opcodes, EntitySection::Types, EntitySection::Arguments};

/// "Opcodes", "Types" or "Arguments".
const char *entitySectionName(EntitySection Section);
/// The section of \p Entity.
EntitySection sectionOfEntity(unsigned Entity);
/// The name in a vocabulary file: "GetElementPtr", "IntegerTy", "Variable",
/// "ICMP_slt".
std::string entityName(unsigned Entity);

inline unsigned entityOfOpcode(const llvm::Instruction &I) {
  return I.getOpcode() - 1;
}

inline unsigned entityOfType(const llvm::Type &Type) {
  return llvm::ir2vec::Vocabulary::getIndex(Type.getTypeID());
}

/// Function, or else pointer, or else constant, or else variable. Branchless,
/// since branches would often be mispredicted.
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

/// True if \p I is not counted because it is not part of the program: LLVM's
/// debug intrinsics and pseudo probes, all of which are calls.
inline bool isWithoutEntities(const llvm::Instruction &I) {
  return I.getOpcode() == llvm::Instruction::Call && I.isDebugOrPseudoInst();
}

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_IR2VEC_IRENTITIES_H
