//===- ModelSignature.h - A model's inputs and outputs as JSON --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelSignature: for runtimes whose files lack the names and types of inputs
/// and outputs. The exporter stores the signature in the file as JSON;
/// docs/reference/model-metadata.md describes the format.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_EXTEND_MODELSIGNATURE_H
#define MLCOMPILERBRIDGE_EXTEND_MODELSIGNATURE_H

#include "MLCompilerBridge/Extend/Model.h"

namespace MLBridge {

struct ModelSignature {
  std::vector<TensorSpec> Inputs;
  std::vector<TensorSpec> Outputs;
  Model::Metadata About;

  /// Parses `{"inputs": [{"name": "x", "type": "float", "shape": ["n", 300]}],
  /// "outputs": [...], "metadata": {"mlbridge.decide": "argmax"}}`. A null or
  /// negative extent is free. A string is a free extent that is equal wherever
  /// its name occurs. Everything else is Malformed.
  static Expected<ModelSignature> parse(std::string_view JSON);

  /// The same for the runtime \p RuntimeName, which does not support strings.
  /// Errors begin with the model's \p Name. Unsupported if an input or output
  /// is a string.
  static Expected<ModelSignature> parseNumeric(std::string_view JSON,
                                               const std::string &Name,
                                               std::string_view RuntimeName);
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_MODELSIGNATURE_H
