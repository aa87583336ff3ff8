//===- Model.h - Asks a model about a kernel -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Contains all code of this tool that uses the bridge, through the C API.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_POLYHEDRAL_MODEL_H
#define MLBRIDGE_POLYHEDRAL_MODEL_H

#include <string>
#include <vector>

namespace MLBridge::polyhedral {

/// The question that a model answers: which row is best.
struct Question {
  /// The number of rows.
  std::size_t Count = 0;
  /// int32 [Count, 1 + 2 * depth]: schedule, sizes, order.
  std::vector<int> Candidates;
  /// float [Count, NumFeatures].
  std::vector<float> Features;
};

/// Asks the model at \p Spec and returns the index of a candidate. Returns 0,
/// the original order, if the model chooses it or defers. If the model fails or
/// replies with another number, returns 0 and sets \p Warning.
int askModel(const std::string &Spec, const Question &Q, std::string &Warning);

} // namespace MLBridge::polyhedral

#endif // MLBRIDGE_POLYHEDRAL_MODEL_H
