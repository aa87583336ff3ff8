//===- ModelMetadata.h - Reads a model's metadata ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Functions that read and check the metadata that runners use. All metadata
/// are listed in docs/reference/model-metadata.md.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_INPROCESS_MODELMETADATA_H
#define MLBRIDGE_LIB_INPROCESS_MODELMETADATA_H

#include "MLCompilerBridge/Runners/InProcessModelRunner.h"

namespace MLBridge::inprocess {

/// The contents of the metadata "mlbridge.decide": a rule, optionally followed
/// by a colon and the name of an output.
struct DefaultDecision {
  DecisionOptions::Rule Rule = DecisionOptions::Rule::Outputs;
  std::string Output;
};

/// Parses the name of a rule, which is "outputs", "argmax" or "sample".
std::optional<DecisionOptions::Rule> parseRule(std::string_view Name);

/// Returns the decision that \p M specifies. Returns a Malformed error if the
/// rule is unknown.
Expected<DefaultDecision> defaultDecision(const Model &M);

/// Returns true if the metadata "mlbridge.finite" of \p M is "true". The model
/// then refuses features that are not finite.
Expected<bool> refusesNonFinite(const Model &M);

/// Returns the features that only the metadata "mlbridge.features" of \p M
/// describes. The result has no inputs of the graph, because the graph already
/// specifies them. Returns a Malformed error if the list is invalid or
/// contradicts the graph.
Expected<std::vector<TensorSpec>> otherFeatures(const Model &M);

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_MODELMETADATA_H
