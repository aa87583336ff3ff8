//===- ONNXCursor.h - Evaluates an ONNX model for one thread ----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ONNXCursor: holds the ONNX Runtime tensors for one thread's requests and
/// reuses them while the shapes stay the same.
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
  /// An input's tensor and its source.
  struct Input {
    Handle<OrtValue> Value;
    /// The shape of the feature, or of the first feature if there are several.
    Shape Dims;
    /// ONNX Runtime's own memory, to which each feature is copied. Null if the
    /// tensor uses the feature's memory or holds strings.
    void *Copy = nullptr;
    /// The feature's memory, if the tensor uses it.
    const void *Borrowed = nullptr;
  };
  /// An output's tensor, reused by the next evaluation.
  struct Output {
    /// The input that this output passes through unchanged, if it does. ONNX
    /// Runtime is not asked for such outputs: it would return the request's own
    /// tensor and ignore a given one.
    std::optional<std::size_t> From;
    std::vector<std::max_align_t> Copy;
    Handle<OrtValue> Value;
    /// True if the view describes Value.
    bool IsKnown = false;
    /// For a list of strings.
    std::vector<char> Text;
    std::vector<std::size_t> Offsets;
    std::vector<std::uint64_t> Lengths;
  };

  ONNXCursor(std::shared_ptr<const ONNXModel> M, Handle<OrtRunOptions> Options);

  void interrupt() override;
  void resume() override;

  Error set(Input &In, const TensorView &Feature);
  /// Copies several features into one tensor, row by row.
  Error merge(Input &In, const SessionInput &What,
              Span<const TensorView> Features);
  Error setNumbers(Input &In, const TensorView &Feature);
  Error setStrings(Input &In, const TensorView &Feature);
  /// Creates the tensor, in its own memory or around \p Data.
  Error make(Input &In, const TensorView &Feature, const void *Data);
  Error evaluate();
  /// Runs the session and takes ownership of the outputs.
  Error run();
  void forgetOutputs();
  /// Returns a copy of \p Feature, whose memory the caller may reuse.
  static void handThrough(const TensorView &Feature, Output &Out,
                          TensorView &View);
  /// Describes the new output \p Out in \p View.
  Error look(Output &Out, TensorView &View);
  Error readStrings(Output &Out, TensorView &View);
  Error check(OrtStatus *Status) const {
    return M->runtime().check(Status, M->name(), ErrorCode::Model);
  }

  const std::shared_ptr<const ONNXModel> M;
  const OrtApi &API;
  const Handle<OrtRunOptions> Options;

  std::vector<Input> Inputs;
  std::vector<Output> Outputs;
  /// The outputs as views.
  std::vector<TensorView> Views;
  /// The outputs that ONNX Runtime computes.
  std::vector<std::size_t> Computed;
  /// The arguments of Run.
  std::vector<const char *> InputNames, OutputNames;
  std::vector<const OrtValue *> InputValues;
  std::vector<OrtValue *> OutputValues;
  /// True if an input's shape differs from the last evaluation.
  bool ShapesChanged = false;
  /// False once outputs have turned out to depend on more than input shapes.
  bool KeepOutputs = true;
  /// The deadline of the current evaluation.
  Deadline Until = Deadline::never();
  /// Declared last, so that interruptions end before other members die.
  inprocess::Watch Clock{*this};
};

} // namespace MLBridge::onnx

#endif // MLBRIDGE_LIB_ONNX_ONNXCURSOR_H
