//===- Expression.h - Statements of kernels ---------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Splits C assignments into tokens and finds the accesses to arrays. Accepts
/// an assignment only if all its accesses are visible, so that no dependence is
/// missed.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_POLYHEDRAL_EXPRESSION_H
#define MLBRIDGE_POLYHEDRAL_EXPRESSION_H

#include "Kernel.h"

#include <string_view>

namespace MLBridge::polyhedral {

/// An access to an array, as it is written in the C text.
struct WrittenAccess {
  std::string Array;
  std::vector<std::string> Subscripts;
  bool IsWrite = false;
};

/// Returns \p Text, in which the names of \p Values are replaced by numbers.
/// Throws UserError if the text has a character that cannot be in an
/// expression.
std::string substitute(std::string_view Text, const Parameters &Values);

/// Returns the accesses to \p Arrays in the assignment \p Body. \p Iterators
/// are the other names that the body may use. Throws UserError unless the body
/// is an assignment to an element of an array without other side effects.
std::vector<WrittenAccess>
findAccesses(const std::string &Body, const std::vector<Array> &Arrays,
             const std::vector<std::string> &Iterators);

/// Throws UserError unless \p Text is an expression of \p Names, numbers and
/// functions of math.h.
void expectExpression(const std::string &Text,
                      const std::vector<std::string> &Names);

} // namespace MLBridge::polyhedral

#endif // MLBRIDGE_POLYHEDRAL_EXPRESSION_H
