//===- Model.h - A model loaded into this process ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines Model and ModelCursor. A runtime, such as ONNX Runtime or
/// TensorFlow, implements both so that a compiler can evaluate the runtime's
/// models in process. InProcessModelRunner selects and checks the features, and
/// turns outputs into decisions.
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
  /// The extents. A negative extent is free, that is, each request chooses it.
  /// Two free extents with the same negative number must be equal in a request,
  /// such as n in "n nodes and an n x n matrix". An extent of AnyExtent (-1) is
  /// an exception: it is independent of all other extents.
  Shape Dims;

  /// True for an output whose rank is known only after the evaluation. Dims is
  /// meaningless for such an output.
  bool HasAnyRank = false;

  static constexpr std::int64_t AnyExtent = -1;

  /// Returns the type and shape as text, such as "float[?,300]", or
  /// "float[...]" for any rank.
  std::string typeStr() const;
};

/// Evaluates a Model for one thread. A cursor owns the memory of the outputs
/// and keeps its model alive.
class ModelCursor {
public:
  virtual ~ModelCursor();

  /// Evaluates the model. \p Inputs have the order, names, types and ranks of
  /// Model::inputs(), and matching extents. The data of the inputs is borrowed
  /// for this call. The returned outputs have the order of Model::outputs().
  /// Their views are valid until the next call.
  ///
  /// Returns the error Model if the runtime fails, or System if memory runs
  /// out.
  virtual Expected<Span<const TensorView>>
  run(Span<const TensorView> Inputs) = 0;

  /// Evaluates the model as run() does. If the evaluation has not finished at
  /// \p Until, interrupts it and returns Timeout. The cursor remains usable
  /// afterwards. The default implementation is for runtimes that cannot be
  /// interrupted: it calls run() and ignores \p Until.
  virtual Expected<Span<const TensorView>>
  runUntil(Span<const TensorView> Inputs, Deadline Until);
};

/// A loaded model. A model is immutable, so any number of threads can use it at
/// the same time. Each thread needs its own cursor.
class Model : public std::enable_shared_from_this<Model> {
public:
  using Metadata = std::vector<std::pair<std::string, std::string>>;

  virtual ~Model();
  Model(const Model &) = delete;
  Model &operator=(const Model &) = delete;

  /// Returns the model's spec for messages, such as "onnx:policy.onnx".
  const std::string &name() const { return Name; }
  Span<const TensorSpec> inputs() const { return Inputs; }
  Span<const TensorSpec> outputs() const { return Outputs; }
  /// Returns the value of \p Key in the metadata of the model's file, or null
  /// if the file lacks \p Key. docs/reference/model-metadata.md lists the keys,
  /// such as "mlbridge.features".
  const std::string *metadata(std::string_view Key) const;

  /// Opens a cursor for the calling thread. If the model has no free extents,
  /// this function allocates all memory that evaluations need.
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
