//===- SizeEnvironment.h - Trains the inliner for size ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The pass `mlbridge-size-environment`. While the pass runs, a trainer decides
/// which calls of whole programs are inlined:
/// \code
///   opt -load-pass-plugin=MLBridgeLLVM.so -mlbridge-environment=shm:trainer
///       -mlbridge-inliner-include-linkage -mlbridge-inliner-include-default
///       -passes=mlbridge-size-environment -disable-output /dev/null
/// \endcode
///
/// **An episode** optimises one program as clang -Oz does. The program's files
/// are linked into one module, as for `mlbridge-size-search`
/// (SizeSearchPass.h). A module without `main` is a shared library, which keeps
/// its exported functions. The trainer's options of a reset are a JSON object:
///
/// - `module`: the file of the module. The compiler keeps the last
///   -mlbridge-size-programs modules in memory.
/// - `callee_files`: the file for the feature `callee_files` (CallFeatures.h),
///   in the form of -mlbridge-inliner-callee-files. Optional.
///
/// **A step** is a decision about one call. The observation has the features
/// that the inliner's model would receive for this call (Inliner.h). The action
/// is 1 if the call is inlined, and 0 otherwise. Calls from one file into
/// another are not inlined, and are not part of the episode. The last
/// observation is zero. If the program has no call to decide about, reset ends
/// the episode.
///
/// **The reward** of the last step is (S - s) / S. s is the number of bytes of
/// linked code, and S the same number with LLVM's own decisions. All earlier
/// rewards are 0, because the size is known only at the end.
///
/// **The information** is a JSON object:
///
/// - after each reset and step: `module`, and for the next call `callee`,
///   `caller`, `location` (InlineDecisions.h) and `default`, LLVM's own
///   decision
/// - at the end: `module`, `text_size` (s), `stock_text_size` (S), `decisions`
///   (the number of steps), and `credits`, a list with one number for each
///   decision. The number is the part of the reward that the decision has
///   earned. It is 0 if LLVM makes the same decision. Otherwise, it is the
///   bytes that attributeChanges() attributes to the decision, divided by S. If
///   no decision accounts for the change of a function's size, the sum of the
///   list differs from the reward.
///
/// An error ends the episode, but not the compiler.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_SIZE_SIZEENVIRONMENT_H
#define MLBRIDGE_LLVM_SIZE_SIZEENVIRONMENT_H

namespace llvm {
class PassBuilder;
} // namespace llvm

namespace MLBridge {

/// Registers the pass with \p PB.
void registerSizeEnvironment(llvm::PassBuilder &PB);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_SIZE_SIZEENVIRONMENT_H
