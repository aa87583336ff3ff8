//===- SizeReplay.h - Replays decisions about size --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `-mlbridge-size=decisions:FILE` compiles as a file of decisions says:
///
/// - which calls are inlined (InlineDecisions.h)
/// - which passes run, and from which functions code is outlined
///   (SizeDecisions.h)
///
/// LLVM decides about everything else. -mlbridge-inliner and
/// -mlbridge-phase-ordering, if given, take precedence. In LTO, the linker
/// generates the code. Only two kinds of decisions apply there: about inlining,
/// and about functions from which nothing is outlined.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SIZE_SIZEREPLAY_H
#define MLBRIDGE_LLVM_SIZE_SIZEREPLAY_H

#include "Pipeline/RegisterInside.h"

namespace MLBridge {

/// Does nothing unless -mlbridge-size was given. \p Register adds other
/// optimisations to the passes of a file.
void registerSizeReplay(llvm::PassBuilder &PB, RegisterInsideOf Register);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SIZE_SIZEREPLAY_H
