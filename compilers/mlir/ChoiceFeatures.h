//===- ChoiceFeatures.h - The tensors of a request --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines NestTensors, which holds the features of a loop nest and of its
/// legal choices as a model receives them.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_MLIR_CHOICEFEATURES_H
#define MLBRIDGE_MLIR_CHOICEFEATURES_H

#include "LoopNest.h"

namespace MLBridge {

/// The columns of `choice_features`: quantities that a compiler's cost model
/// would use. README.md describes them.
inline constexpr std::int64_t NumColumns = 44;

/// The features of a nest with n loops, a accesses and c choices.
struct NestTensors {
  explicit NestTensors(const LoopNest &Nest);

  llvm::SmallVector<std::int32_t, 8> Parallel; ///< [n], 0 or 1.
  llvm::SmallVector<std::int64_t, 64> Strides; ///< [a,n], in bytes.
  /// [a,3]: the bytes of an element, Access::Memory, 1 for a write.
  llvm::SmallVector<std::int32_t, 24> Accesses;
  llvm::SmallVector<std::int32_t, 4> Counts;  ///< [4], as in Operations.
  llvm::SmallVector<std::int64_t, 0> Choices; ///< [c,2n+1]
  llvm::SmallVector<float, 0> Features;       ///< [c,NumColumns]
  std::int64_t NumAccesses = 0;
  std::int64_t NumChoices = 0;
};

} // namespace MLBridge

#endif // MLBRIDGE_MLIR_CHOICEFEATURES_H
