//===- IREntities.cpp - The entities of IR that IR2Vec counts -------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines the names of entities and sections.
///
//===----------------------------------------------------------------------===//

#include "IR2Vec/IREntities.h"

using namespace llvm;

namespace MLBridge {

const char *entitySectionName(EntitySection Section) {
  switch (Section) {
  case EntitySection::Opcodes:
    return "Opcodes";
  case EntitySection::Types:
    return "Types";
  case EntitySection::Arguments:
    break;
  }
  return "Arguments";
}

EntitySection sectionOfEntity(unsigned Entity) {
  if (Entity < ir2vec::Vocabulary::MaxOpcodes)
    return EntitySection::Opcodes;
  return Entity < FirstOperandEntity ? EntitySection::Types
                                     : EntitySection::Arguments;
}

std::string entityName(unsigned Entity) {
  // Call LLVM's function only if the entity is not a predicate. For predicates,
  // the function returns a static buffer, which is not thread-safe.
  if (Entity < FirstPredicateEntity)
    return ir2vec::Vocabulary::getStringKey(Entity).str();
  unsigned Local = Entity - FirstPredicateEntity;
  constexpr unsigned NumFloat =
      CmpInst::LAST_FCMP_PREDICATE - CmpInst::FIRST_FCMP_PREDICATE + 1;
  bool IsFloat = Local < NumFloat;
  unsigned Predicate = IsFloat
                           ? CmpInst::FIRST_FCMP_PREDICATE + Local
                           : CmpInst::FIRST_ICMP_PREDICATE + Local - NumFloat;
  StringRef Name =
      CmpInst::getPredicateName(static_cast<CmpInst::Predicate>(Predicate));
  return (IsFloat ? "FCMP_" : "ICMP_") + Name.str();
}

} // namespace MLBridge
