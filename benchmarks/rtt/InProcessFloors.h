//===- InProcessFloors.h - Direct calls of runtimes -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The floors of the in-process runners, that is, the fastest possible
/// evaluations. A floor calls the runtime directly, like a compiler with one
/// hard-coded model. The tensors are created and bound once, so only the
/// runtime's own function is timed.
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

/// Evaluates a model once. The reply is valid until the next call.
using Ask = std::function<Span<const float>()>;

struct InProcessSubject {
  /// The model for the runner. The floor calls the same object where possible,
  /// so that both read the same weights.
  std::shared_ptr<const Model> M;
  Ask Floor;
};

/// Opens a model and prepares its floor. The model must have one input, `x`,
/// and one output, both float32 with fixed extents. \p Features is the input
/// and must outlive the result. \p Scheme is the scheme of a model spec: onnx,
/// aot or tf. Ends the process on failure.
InProcessSubject openInProcess(const std::string &Scheme,
                               const std::string &File,
                               Span<const float> Features);

} // namespace MLBridge::bench

#endif // MLCOMPILERBRIDGE_BENCHMARKS_INPROCESSFLOORS_H
