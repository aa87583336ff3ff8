//===- ONNXCursor.h - Evaluates an ONNX model for one thread ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ONNXCursor: holds the tensors of ONNX Runtime for one thread's requests. It
/// reuses the tensors while their shapes stay the same.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_ONNX_ONNXCURSOR_H
#define MLBRIDGE_LIB_ONNX_ONNXCURSOR_H

#include "InProcess/Watchdog.h"
#include "ONNX/ONNXModel.h"

#include <cstddef>

namespace MLBridge::onnx {

class ONNXCursor final : public ModelCursor, inprocess::Interruptible {
public:
  static Expected<std::unique_ptr<ModelCursor>>
  open(std::shared_ptr<const ONNXModel> M);

  Expected<Span<const TensorView>>
  run(Span<const TensorView> Features) override;
  Expected<Span<const TensorView>> runUntil(Span<const TensorView> Features,
                                            Deadline Until) override;

private:
  /// The tensor of an input, and the memory from which its contents come.
  struct Input {
    Handle<OrtValue> Value;
    /// The shape of the feature. If the tensor consists of several features,
    /// this is the shape of the first feature.
    Shape Dims;
    /// The tensor's memory, if ONNX Runtime owns it. Each feature is copied to
    /// this memory. Null if the tensor uses the feature's memory, or if it
    /// contains strings.
    void *Copy = nullptr;
    /// The feature's memory, if the tensor uses it. Otherwise null.
    const void *Borrowed = nullptr;
  };
  /// The tensor of an output. The next evaluation reuses it.
  struct Output {
    /// The index of an input, if the model returns that input unchanged as this
    /// output. The cursor does not request this output from ONNX Runtime, which
    /// would ignore the output's tensor and return the request's own tensor.
    std::optional<std::size_t> From;
    std::vector<std::max_align_t> Copy;
    Handle<OrtValue> Value;
    /// True if the output's view describes Value.
    bool IsKnown = false;
    /// The contents of an output that is a string or a list of strings.
    std::vector<char> Text;
    std::vector<std::size_t> Offsets;
    std::vector<std::uint64_t> Lengths;
  };

  ONNXCursor(std::shared_ptr<const ONNXModel> M, Handle<OrtRunOptions> Options);

  void interrupt() override;
  void resume() override;

  Error set(Input &In, const TensorView &Feature);
  /// Copies several features to one tensor, row by row.
  Error merge(Input &In, const SessionInput &What,
              Span<const TensorView> Features);
  Error setNumbers(Input &In, const TensorView &Feature);
  Error setStrings(Input &In, const TensorView &Feature);
  /// Creates the tensor around \p Data. If \p Data is null, the tensor gets its
  /// own memory.
  Error make(Input &In, const TensorView &Feature, const void *Data);
  Error evaluate();
  /// Runs the session, and takes ownership of the outputs.
  Error run();
  void forgetOutputs();
  /// Copies \p Feature to \p Out, and describes the copy in \p View. The caller
  /// may then reuse the feature's memory.
  static void copyToOutput(const TensorView &Feature, Output &Out,
                           TensorView &View);
  /// Describes the new output \p Out in \p View.
  Error updateView(Output &Out, TensorView &View);
  Error readStrings(Output &Out, TensorView &View);
  Error check(OrtStatus *Status) const {
    return M->runtime().check(Status, M->name(), ErrorCode::Model);
  }

  const std::shared_ptr<const ONNXModel> M;
  const OrtApi &API;
  const Handle<OrtRunOptions> Options;

  std::vector<Input> Inputs;
  std::vector<Output> Outputs;
  std::vector<TensorView> Views;
  /// The indices of the outputs that ONNX Runtime computes.
  std::vector<std::size_t> Computed;
  /// The arguments of OrtApi::Run.
  std::vector<const char *> InputNames, OutputNames;
  std::vector<const OrtValue *> InputValues;
  std::vector<OrtValue *> OutputValues;
  /// True if an input's shape differs from its shape in the last evaluation.
  bool ShapesChanged = false;
  /// True while the outputs' tensors may be reused. Becomes false when an
  /// output's shape changes although no input's shape has changed.
  bool KeepOutputs = true;
  Deadline Until = Deadline::never();
  /// Declared last, so that it is destroyed first. Therefore, no interruption
  /// can use destroyed members.
  inprocess::Watch Clock{*this};
};

} // namespace MLBridge::onnx

#endif // MLBRIDGE_LIB_ONNX_ONNXCURSOR_H
