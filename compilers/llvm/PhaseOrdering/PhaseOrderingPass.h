//===- PhaseOrderingPass.h - A pipeline that a model decides on -*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Phase ordering in a compiler: with -mlbridge-phase-ordering=SPEC, an episode
/// takes the place of the optimisation pipeline.
/// \code
///   clang -Oz -fpass-plugin=MLBridgeLLVM.so
///         -mllvm -mlbridge-phase-ordering=onnx:policy.onnx -c a.c
///   opt -load-pass-plugin=MLBridgeLLVM.so
///         -mlbridge-phase-ordering=onnx:policy.onnx
///         -passes=mlbridge-phase-ordering a.bc
/// \endcode
///
/// **Where.** At the start of the pipelines of -Os and -Oz, LTO's before the
/// link among them, and of what ThinLTO does in the link with modules that are
/// mostly of functions marked `optsize` or `minsize`. When an episode is
/// done, the passes behind it that LLVM may leave out are left out; those that
/// it may not (sanitizers, writers) run as ever, and so do those that other
/// plug-ins have put in. At other levels nothing happens. Nor does it, but for
/// a remark, where a profile is written or used, and where functions say that
/// they are called (-finstrument-functions). As a pass of its own, an episode
/// runs where it stands.
///
/// **When the model fails** (-mlbridge-on-error=fallback), or defers, or a
/// search finds nothing better than that pipeline, it goes on as if this were
/// not there: the object is the stock compiler's. Only where a model fails
/// after its first answer has that been done by then. The pass by itself runs
/// -Oz instead.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGPASS_H
#define MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGPASS_H

#include "PhaseOrdering/RegisterInside.h"

namespace MLBridge {

/// Registers the pass `mlbridge-phase-ordering`, and where
/// -mlbridge-phase-ordering was given its places in the pipelines. Episodes run
/// with what \p Register adds.
void registerPhaseOrdering(llvm::PassBuilder &PB, RegisterInsideOf Register);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_PHASEORDERING_PHASEORDERINGPASS_H
