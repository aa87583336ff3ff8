//===- ModelSignature.h - What goes into a model and comes out --*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelSignature: for runtimes whose files do not say the names and types of
/// their inputs and outputs. Whoever writes such a file puts this into it, as
/// JSON; docs/model-metadata.md has the form.
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

  /// From `{"inputs": [{"name": "x", "type": "float", "shape": ["n", 300]}],
  /// "outputs": [...], "metadata": {"mlbridge.decide": "argmax"}}`. An extent
  /// that is null or negative is free; one that is a name is free, and the same
  /// wherever the name is. Malformed where it is anything else.
  static Expected<ModelSignature> parse(std::string_view JSON);

  /// The same for the model \p Name of a runtime, \p RuntimeName, that has no
  /// strings. Errors begin with the model's name; Unsupported where an input or
  /// output is a string.
  static Expected<ModelSignature> parseNumeric(std::string_view JSON,
                                               const std::string &Name,
                                               std::string_view RuntimeName);
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_MODELSIGNATURE_H
