//===- Candidates.h - The choices of a kernel -------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Lists the choices among which a model decides.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_POLYHEDRAL_CANDIDATES_H
#define MLBRIDGE_POLYHEDRAL_CANDIDATES_H

#include "Scheduler.h"

namespace MLBridge::polyhedral {

/// Returns the choices, without duplicates. The first one is the original
/// order.
std::vector<Choice> candidatesOf(const Scheduler &S);

/// Parses "SCHEDULE", "SCHEDULE:SIZES" or "SCHEDULE:SIZES:ORDER", as in
/// "1:32,32,0:0,2,1". Throws UserError.
Choice parseChoice(const std::string &Text, const Scheduler &S);

/// Returns the text that parseChoice() parses.
std::string textOf(const Choice &C);

} // namespace MLBridge::polyhedral

#endif // MLBRIDGE_POLYHEDRAL_CANDIDATES_H
