//===- ONNXModel.h - One ONNX model, loaded ---------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ONNXModel: a session of ONNX Runtime, which any number of threads run at a
/// time, each by an ONNXCursor.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_ONNX_ONNXMODEL_H
#define MLBRIDGE_LIB_ONNX_ONNXMODEL_H

#include "ONNX/ONNXRuntime.h"

namespace MLBridge::onnx {

/// An input of the session: one of the model's, or several that InputMerge.h
/// has made one.
struct SessionInput {
  std::string Name;
  /// The indices of the model's inputs that it is made of, in their order.
  std::vector<std::size_t> Parts;
  /// Of several. The extent along which they are put together; those before it
  /// are theirs, and this and those after it are fixed.
  std::size_t Axis = 0;
  Shape Dims;
  /// How many bytes each part has of each row, which is what is in Dims from
  /// Axis on.
  std::vector<std::size_t> PartBytes;
};

class ONNXModel final : public Model {
public:
  static Expected<std::shared_ptr<const Model>>
  load(const std::string &File, std::shared_ptr<const Runtime> Library);

  Expected<std::unique_ptr<ModelCursor>> open() const override;

  const Runtime &runtime() const { return *Library; }
  /// ONNX Runtime's sessions are run by many threads, though not const.
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

/// ONNX Runtime's type for \p Type, and the other way round, where there is
/// one.
ONNXTensorElementDataType toONNX(ElementType Type);
std::optional<ElementType> fromONNX(ONNXTensorElementDataType Type);

} // namespace MLBridge::onnx

#endif // MLBRIDGE_LIB_ONNX_ONNXMODEL_H
