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

class ONNXModel final : public Model {
public:
  static Expected<std::shared_ptr<const Model>>
  load(const std::string &File, std::shared_ptr<const Runtime> Library);

  Expected<std::unique_ptr<ModelCursor>> open() const override;

  const Runtime &runtime() const { return *Library; }
  /// ONNX Runtime's sessions are run by many threads, though not const.
  OrtSession *session() const { return Session.get(); }

private:
  ONNXModel(std::string Name, std::vector<TensorSpec> Inputs,
            std::vector<TensorSpec> Outputs, Metadata About,
            std::shared_ptr<const Runtime> Library, Handle<OrtSession> Session)
      : Model(std::move(Name), std::move(Inputs), std::move(Outputs),
              std::move(About)),
        Library(std::move(Library)), Session(std::move(Session)) {}

  std::shared_ptr<const Runtime> Library;
  Handle<OrtSession> Session;
};

/// ONNX Runtime's type for \p Type, and the other way round, where there is
/// one.
ONNXTensorElementDataType toONNX(ElementType Type);
std::optional<ElementType> fromONNX(ONNXTensorElementDataType Type);

} // namespace MLBridge::onnx

#endif // MLBRIDGE_LIB_ONNX_ONNXMODEL_H
