//===- ONNXModel.h - A loaded ONNX model ------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ONNXModel: a session of ONNX Runtime, which any number of threads can run at
/// the same time, each through its own ONNXCursor.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_ONNX_ONNXMODEL_H
#define MLBRIDGE_LIB_ONNX_ONNXMODEL_H

#include "ONNX/ONNXRuntime.h"

namespace MLBridge::onnx {

/// An input of the session: an input of the model, or several inputs that
/// InputMerge.h has merged.
struct SessionInput {
  std::string Name;
  /// The indices of the model's inputs that it consists of, in order.
  std::vector<std::size_t> Parts;
  /// Only for merged inputs: the extent along which they are concatenated. The
  /// extents before it come from the inputs; Dims has the fixed ones from it
  /// on.
  std::size_t Axis = 0;
  Shape Dims;
  /// The number of bytes of each part in one row. A row has the extents of Dims
  /// from Axis on.
  std::vector<std::size_t> PartBytes;
};

class ONNXModel final : public Model {
public:
  static Expected<std::shared_ptr<const Model>>
  load(const std::string &File, std::shared_ptr<const Runtime> Library);

  Expected<std::unique_ptr<ModelCursor>> open() const override;

  const Runtime &runtime() const { return *Library; }
  /// Not const, but many threads can run a session at the same time.
  OrtSession *session() const { return Session.get(); }
  /// Each of inputs() is a part of one of these.
  Span<const SessionInput> sessionInputs() const { return SessionInputs; }

private:
  ONNXModel(std::string Name, std::vector<TensorSpec> Inputs,
            std::vector<TensorSpec> Outputs, Metadata About,
            std::shared_ptr<const Runtime> Library, Handle<OrtSession> Session,
            std::vector<SessionInput> SessionInputs)
      : Model(std::move(Name), std::move(Inputs), std::move(Outputs),
              std::move(About)),
        Library(std::move(Library)), Session(std::move(Session)),
        SessionInputs(std::move(SessionInputs)) {}

  std::shared_ptr<const Runtime> Library;
  Handle<OrtSession> Session;
  std::vector<SessionInput> SessionInputs;
};

/// Conversions between element types; empty if ONNX Runtime's type has no
/// equivalent.
ONNXTensorElementDataType toONNX(ElementType Type);
std::optional<ElementType> fromONNX(ONNXTensorElementDataType Type);

} // namespace MLBridge::onnx

#endif // MLBRIDGE_LIB_ONNX_ONNXMODEL_H
