//===- Model.h - A model that is loaded into this process ------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Model and ModelCursor: what a runtime (ONNX Runtime, generated C,
/// TensorFlow, ...) has to provide so that a compiler can ask its models
/// without leaving the process. InProcessModelRunner does the rest: it finds
/// the features that a model takes, checks them, and makes decisions of what
/// comes out.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_EXTEND_MODEL_H
#define MLCOMPILERBRIDGE_EXTEND_MODEL_H

#include "MLCompilerBridge/Deadline.h"
#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Tensor.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace MLBridge {

/// What a model says of an input or an output.
struct TensorSpec {
  std::string Name;
  ElementType Type = ElementType::Float;
  /// An extent below 0 is free. AnyExtent is free by itself; another negative
  /// number is the same extent wherever it stands in a model (the n of "n nodes
  /// and an n x n matrix").
  Shape Dims;

  /// Of an output whose rank shows only when it is computed; Dims says nothing.
  bool HasAnyRank = false;

  static constexpr std::int64_t AnyExtent = -1;

  /// "float[?,300]"; "float[...]" for any rank.
  std::string typeStr() const;
};

/// One thread's way to ask a Model: it owns what an evaluation writes to.
/// Keeps its model alive.
class ModelCursor {
public:
  virtual ~ModelCursor();

  /// Evaluates the model. \p Inputs are in the order of Model::inputs(), with
  /// the names, types and ranks that it says, and extents that fit; their data
  /// is borrowed for this call. The outputs are in the order of
  /// Model::outputs(), their views valid until the next call.
  ///
  /// ErrorCode::Model: the runtime failed; where memory ran out,
  /// ErrorCode::System.
  virtual Expected<Span<const TensorView>>
  run(Span<const TensorView> Inputs) = 0;

  /// As run(), but where the runtime can be interrupted, an evaluation that is
  /// not done by \p Until is given up: ErrorCode::Timeout. The cursor can be
  /// asked again. The default calls run(), however long that takes.
  virtual Expected<Span<const TensorView>>
  runUntil(Span<const TensorView> Inputs, Deadline Until);
};

/// A loaded model: immutable, and used by any number of threads at a time, each
/// through a cursor of its own.
class Model : public std::enable_shared_from_this<Model> {
public:
  using Metadata = std::vector<std::pair<std::string, std::string>>;

  virtual ~Model();
  Model(const Model &) = delete;
  Model &operator=(const Model &) = delete;

  /// For messages: the spec that names it, "onnx:policy.onnx".
  const std::string &name() const { return Name; }
  Span<const TensorSpec> inputs() const { return Inputs; }
  Span<const TensorSpec> outputs() const { return Outputs; }
  /// What the model's file says of itself, such as "mlbridge.features": see
  /// docs/model-metadata.md. Null where it does not.
  const std::string *metadata(std::string_view Key) const;

  /// A cursor for the calling thread, with all the memory that it needs where
  /// the model's extents are fixed.
  virtual Expected<std::unique_ptr<ModelCursor>> open() const = 0;

protected:
  Model(std::string Name, std::vector<TensorSpec> Inputs,
        std::vector<TensorSpec> Outputs, Metadata About);

private:
  std::string Name;
  std::vector<TensorSpec> Inputs;
  std::vector<TensorSpec> Outputs;
  Metadata About;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_EXTEND_MODEL_H
