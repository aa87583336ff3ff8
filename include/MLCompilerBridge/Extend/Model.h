//===- Model.h - A model loaded into this process ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Model and ModelCursor: what a runtime (ONNX Runtime, generated C,
/// TensorFlow, ...) implements so that a compiler can evaluate its models in
/// process. InProcessModelRunner does the rest: it selects and checks the
/// features, and turns outputs into decisions.
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

/// An input or output of a model.
struct TensorSpec {
  std::string Name;
  ElementType Type = ElementType::Float;
  /// A negative extent is free. AnyExtent is independent of all others; another
  /// negative number is the same extent everywhere in the model, such as n in
  /// "n nodes and an n x n matrix".
  Shape Dims;

  /// True for an output whose rank is only known after evaluation. Dims is
  /// meaningless then.
  bool HasAnyRank = false;

  static constexpr std::int64_t AnyExtent = -1;

  /// "float[?,300]"; "float[...]" for any rank.
  std::string typeStr() const;
};

/// Evaluates a Model for one thread and owns the memory of the outputs. Keeps
/// its model alive.
class ModelCursor {
public:
  virtual ~ModelCursor();

  /// Evaluates the model. \p Inputs are in the order of Model::inputs(), with
  /// its names, types and ranks, and with matching extents; their data is
  /// borrowed for this call. The outputs are in the order of Model::outputs();
  /// their views are valid until the next call.
  ///
  /// Errors: Model: the runtime failed. System: memory ran out.
  virtual Expected<Span<const TensorView>>
  run(Span<const TensorView> Inputs) = 0;

  /// Like run(), but interrupts an evaluation that has not finished by \p
  /// Until, if the runtime can be interrupted: ErrorCode::Timeout. The cursor
  /// remains usable. The default calls run() and ignores \p Until.
  virtual Expected<Span<const TensorView>>
  runUntil(Span<const TensorView> Inputs, Deadline Until);
};

/// A loaded model. Immutable; any number of threads can use it at the same
/// time, each through its own cursor.
class Model : public std::enable_shared_from_this<Model> {
public:
  using Metadata = std::vector<std::pair<std::string, std::string>>;

  virtual ~Model();
  Model(const Model &) = delete;
  Model &operator=(const Model &) = delete;

  /// For messages: the spec of the model, "onnx:policy.onnx".
  const std::string &name() const { return Name; }
  Span<const TensorSpec> inputs() const { return Inputs; }
  Span<const TensorSpec> outputs() const { return Outputs; }
  /// The metadata in the model's file, such as "mlbridge.features"
  /// (docs/reference/model-metadata.md). Null if the file lacks \p Key.
  const std::string *metadata(std::string_view Key) const;

  /// Opens a cursor for the calling thread. If the model's extents are fixed,
  /// all memory is allocated here.
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
