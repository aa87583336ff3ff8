//===- ModelSignature.h - A model's inputs and outputs as JSON --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines ModelSignature, the names and types of a model's inputs and outputs.
/// The model files of some runtimes do not contain this information. For such a
/// runtime, the exporter adds the signature to the file as JSON.
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
  /// negative extent is free. A string also means a free extent, and all
  /// extents with the same string must be equal. Returns Malformed for any
  /// other text.
  static Expected<ModelSignature> parse(std::string_view JSON);

  /// Parses a signature as above for the runtime \p RuntimeName, which does not
  /// support strings. Returns Unsupported if an input or output is a string.
  /// Errors begin with the model's \p Name.
  static Expected<ModelSignature> parseNumeric(std::string_view JSON,
                                               const std::string &Name,
                                               std::string_view RuntimeName);
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_MODELSIGNATURE_H
