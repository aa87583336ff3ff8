//===- Decisions.h - The four decisions of the plug-in ---------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Declares the four kinds of decisions that a model can make in gcc. Each
/// function decide...() makes gcc ask the model about one kind. Include this
/// header after gcc's headers.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_GCC_DECISIONS_H
#define MLBRIDGE_GCC_DECISIONS_H

#include "Model.h"

/// Asks about each call that gcc may inline. The reply 0 keeps the call, 1
/// inlines it, and 2 leaves the decision to gcc.
void decideInlining(const char *Plugin, Model &Asked);
/// Asks for the unroll factor of each innermost loop. The reply 0 leaves the
/// loop to gcc.
void decideUnrolling(const char *Plugin, Model &Asked);
/// Asks for the optimisation flags of each function. The reply is a row of the
/// menu in Flags.cpp.
void decideFlags(const char *Plugin, Model &Asked);
/// Asks about each optional pass on a function. The reply 0 skips the pass, and
/// 1 runs it.
void decideGates(const char *Plugin, Model &Asked);

/// Numbers that describe a function. They have the names that LLVM uses.
struct FunctionCounts {
  int32_t BasicBlocks = 0;
  /// Blocks that are the target of a conditional jump.
  int32_t ConditionallyExecutedBlocks = 0;
  int32_t Instructions = 0;
  int32_t Loads = 0;
  int32_t Stores = 0;
  int32_t Calls = 0;
  int32_t TopLevelLoops = 0;
  int32_t MaxLoopDepth = 0;

  /// Sets the counts as features of the next request.
  void describeTo(Model &Asked) const;
};

/// Returns the counts of \p Function, which must be GIMPLE with a control flow
/// graph.
FunctionCounts countFunction(function *Function);

/// Makes gcc run \p Pass before or after the first pass called \p Reference.
void addPass(const char *Plugin, opt_pass *Pass, const char *Reference,
             pass_positioning_ops Where);

/// Returns the name of \p Function in the assembly.
const char *nameOf(tree Function);

#endif // MLBRIDGE_GCC_DECISIONS_H
