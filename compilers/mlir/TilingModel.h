//===- TilingModel.h - The model that decides about loop nests --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines TilingModel, which is all that this plug-in says to the bridge.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_MLIR_TILINGMODEL_H
#define MLBRIDGE_MLIR_TILINGMODEL_H

#include "LoopNest.h"

#include "MLCompilerBridge/MLModelRunner.h"

#include "llvm/ADT/StringRef.h"

#include <memory>

namespace MLBridge {

/// A model behind a spec. One thread at a time may use it.
class TilingModel {
public:
  /// Creates the runner for \p Spec, which connects at the first request.
  static Expected<std::unique_ptr<TilingModel>> open(llvm::StringRef Spec);

  /// Requests a choice for \p Nest in the function \p Function. Returns the
  /// choice that leaves the nest if the model defers, an error if the model
  /// fails, and SchemaMismatch if its reply is not a legal choice.
  Expected<TilingChoice> choose(const LoopNest &Nest, llvm::StringRef Function);

private:
  explicit TilingModel(std::unique_ptr<MLModelRunner> Runner)
      : Runner(std::move(Runner)) {}

  const std::unique_ptr<MLModelRunner> Runner;
};

} // namespace MLBridge

#endif // MLBRIDGE_MLIR_TILINGMODEL_H
