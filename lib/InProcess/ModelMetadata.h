//===- ModelMetadata.h - Reads a model's metadata ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads and checks the metadata that runners use.
/// docs/reference/model-metadata.md lists all metadata.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_INPROCESS_MODELMETADATA_H
#define MLBRIDGE_LIB_INPROCESS_MODELMETADATA_H

#include "MLCompilerBridge/Runners/InProcessModelRunner.h"

namespace MLBridge::inprocess {

/// "mlbridge.decide": a rule, optionally followed by a colon and its output.
struct DefaultDecision {
  DecisionOptions::Rule Rule = DecisionOptions::Rule::Outputs;
  std::string Output;
};

/// Parses the name of a rule: outputs, argmax, sample.
std::optional<DecisionOptions::Rule> parseRule(std::string_view Name);

/// The decision that \p M specifies. Malformed if it is unknown.
Expected<DefaultDecision> defaultDecision(const Model &M);

/// True if \p M refuses features that are not finite ("mlbridge.finite").
Expected<bool> refusesNonFinite(const Model &M);

/// The features of "mlbridge.features" that are not inputs of \p M; the graph
/// specifies its inputs. Malformed if the list is invalid or contradicts the
/// graph.
Expected<std::vector<TensorSpec>> otherFeatures(const Model &M);

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_MODELMETADATA_H
