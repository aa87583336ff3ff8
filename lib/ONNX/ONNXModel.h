//===- ONNXModel.h - A loaded ONNX model ------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ONNXModel: a session of ONNX Runtime. Any number of threads can run the
/// session at the same time. Each thread uses its own ONNXCursor.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_ONNX_ONNXMODEL_H
#define MLBRIDGE_LIB_ONNX_ONNXMODEL_H

#include "ONNX/ONNXRuntime.h"

namespace MLBridge::onnx {

struct FileSurvey;

/// An input of the session. It is an input of the model, or several inputs that
/// InputMerge.h has merged.
struct SessionInput {
  std::string Name;
  /// The indices of the model's inputs that form this input, in order.
  std::vector<std::size_t> Parts;
  /// The dimension along which merged inputs are concatenated. It is 0 if this
  /// input is not merged. The extents before Axis come from the features. Dims
  /// contains the fixed extents from Axis on.
  std::size_t Axis = 0;
  Shape Dims;
  /// The number of bytes of each part in one row. A row has the extents of Dims
  /// from Axis on.
  std::vector<std::size_t> PartBytes;
};

class ONNXModel final : public Model {
public:
  /// Loads the model in \p File. \p Facts is its survey.
  static Expected<std::shared_ptr<const Model>>
  load(const std::string &File, const FileSurvey &Facts,
       const ONNXOptions &Chosen, std::shared_ptr<const Runtime> Library);

  Expected<std::unique_ptr<ModelCursor>> open() const override;

  const Runtime &runtime() const { return *Library; }
  /// Returns the session. The pointer is not const, but many threads can run
  /// the session at the same time.
  OrtSession *session() const { return Session.get(); }
  /// Returns the session's inputs. Each input of the model is a part of one
  /// session input.
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

/// Functions that convert between element types. fromONNX() returns nullopt if
/// ONNX Runtime's type has no equivalent.
ONNXTensorElementDataType toONNX(ElementType Type);
std::optional<ElementType> fromONNX(ONNXTensorElementDataType Type);
/// Describes the error that \p Type has no equivalent.
std::string unknownType(ONNXTensorElementDataType Type);

} // namespace MLBridge::onnx

#endif // MLBRIDGE_LIB_ONNX_ONNXMODEL_H
