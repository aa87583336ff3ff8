//===- Model.h - Asks a model about a kernel -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// All code of this tool that speaks to the bridge, through the C API.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_POLYHEDRAL_MODEL_H
#define MLBRIDGE_POLYHEDRAL_MODEL_H

#include <string>
#include <vector>

namespace MLBridge::polyhedral {

/// What a model is asked: which row is best.
struct Question {
  /// The number of rows.
  std::size_t Count = 0;
  /// int32 [Count, 1 + 2 * depth]: schedule, sizes, order.
  std::vector<int> Candidates;
  /// float [Count, NumFeatures].
  std::vector<float> Features;
};

/// Asks the model at \p Spec and returns the index of a candidate. If the model
/// fails or returns another number, returns 0 and sets \p Warning. 0 is the
/// original order, which a model may also choose or defer to.
int askModel(const std::string &Spec, const Question &Q, std::string &Warning);

} // namespace MLBridge::polyhedral

#endif // MLBRIDGE_POLYHEDRAL_MODEL_H
