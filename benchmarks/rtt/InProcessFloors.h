//===- InProcessFloors.h - What a runtime itself takes ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The floors that the runners for models in this process are held against: a
/// direct call of the same runtime, as it would stand in a compiler that knows
/// its one model by heart. The tensors are made once, and bound; what is timed
/// is the runtime's own function.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_BENCHMARKS_INPROCESSFLOORS_H
#define MLCOMPILERBRIDGE_BENCHMARKS_INPROCESSFLOORS_H

#include "MLCompilerBridge/Extend/Model.h"
#include "MLCompilerBridge/Span.h"

#include <functional>
#include <memory>
#include <string>

namespace MLBridge::bench {

/// Evaluates a model once; the answer is valid until the next call.
using Ask = std::function<Span<const float>()>;

struct InProcessSubject {
  /// What the runner is to ask: it is the very model that the floor calls, so
  /// that the two read the same weights at the same place.
  std::shared_ptr<const Model> M;
  Ask Floor;
};

/// Opens a model of one input, `x`, and one output, both of float32s and of
/// fixed extents. \p Features are the input's, and outlive the subject.
/// \p Scheme is that of a model spec: onnx, aot or tf. Ends the process where
/// something is wrong.
InProcessSubject openInProcess(const std::string &Scheme,
                               const std::string &File,
                               Span<const float> Features);

} // namespace MLBridge::bench

#endif // MLCOMPILERBRIDGE_BENCHMARKS_INPROCESSFLOORS_H
