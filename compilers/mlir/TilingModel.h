//===- TilingModel.h - The model that decides about loop nests --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines TilingModel, which contains all code of this plug-in that uses the
/// bridge.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_MLIR_TILINGMODEL_H
#define MLBRIDGE_MLIR_TILINGMODEL_H

#include "LoopNest.h"

#include "MLCompilerBridge/MLModelRunner.h"

#include "llvm/ADT/StringRef.h"

namespace MLBridge {

/// A model behind a spec. One thread at a time may use it.
class TilingModel {
public:
  bool isOpen() const { return Runner != nullptr; }

  /// Opens the model at \p Spec, but connects only at the first request.
  /// Returns the mistake in \p Spec, or an empty string.
  std::string open(llvm::StringRef Spec);

  /// Requests a choice for \p Nest in the function \p Function. If the model
  /// defers, fails or replies with an illegal choice, returns the choice that
  /// leaves the nest as it is. If the model fails or its choice is illegal,
  /// also sets \p Failure.
  TilingChoice choose(const LoopNest &Nest, llvm::StringRef Function,
                      std::string &Failure);

private:
  std::unique_ptr<MLModelRunner> Runner;
};

} // namespace MLBridge

#endif // MLBRIDGE_MLIR_TILINGMODEL_H
