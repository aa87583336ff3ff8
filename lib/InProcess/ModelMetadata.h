//===- ModelMetadata.h - What a model's file says of itself -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The metadata that runners act on, read and checked; docs/model-metadata.md
/// has all of it.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_INPROCESS_MODELMETADATA_H
#define MLBRIDGE_LIB_INPROCESS_MODELMETADATA_H

#include "MLCompilerBridge/Runners/InProcessModelRunner.h"

namespace MLBridge::inprocess {

/// "mlbridge.decide": a rule, and behind a colon the output it is for.
struct DefaultDecision {
  DecisionOptions::Rule Rule = DecisionOptions::Rule::Outputs;
  std::string Output;
};

/// The rule of that name: outputs, argmax, sample.
std::optional<DecisionOptions::Rule> parseRule(std::string_view Name);

/// What \p M wants to be made of its outputs. Malformed where it says something
/// that is not known here.
Expected<DefaultDecision> defaultDecision(const Model &M);

/// Whether \p M refuses features that are not finite ("mlbridge.finite").
Expected<bool> refusesNonFinite(const Model &M);

/// The features that \p M was made for ("mlbridge.features"), but not those
/// that are its inputs: what those must be, the graph says. Malformed where
/// this is no such list, or where it contradicts the graph.
Expected<std::vector<TensorSpec>> otherFeatures(const Model &M);

} // namespace MLBridge::inprocess

#endif // MLBRIDGE_LIB_INPROCESS_MODELMETADATA_H
