//===- ONNXCursor.h - One thread's way to run an ONNX model -----*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ONNXCursor: the tensors of ONNX Runtime that one thread's requests go
/// through, made once and kept as long as the shapes stay.
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
  /// An input's tensor, and what it is a tensor of.
  struct Input {
    Handle<OrtValue> Value;
    /// Of the feature; of the first, where there are several.
    Shape Dims;
    /// ONNX Runtime's own memory, into which each feature is copied; null where
    /// the tensor is of the feature's memory, or of strings.
    void *Copy = nullptr;
    /// The feature's memory, where the tensor is of that.
    const void *Borrowed = nullptr;
  };
  /// An output's tensor, kept to be written to again.
  struct Output {
    /// The input that it is, in a graph that hands one through. ONNX Runtime is
    /// not asked for it: as such an output it gives the tensor of the request,
    /// and writes to none that it is given.
    std::optional<std::size_t> From;
    std::vector<std::max_align_t> Copy;
    Handle<OrtValue> Value;
    /// Whether its view is of Value.
    bool IsKnown = false;
    /// Of a list of strings.
    std::vector<char> Text;
    std::vector<std::size_t> Offsets;
    std::vector<std::uint64_t> Lengths;
  };

  ONNXCursor(std::shared_ptr<const ONNXModel> M, Handle<OrtRunOptions> Options);

  void interrupt() override;
  void resume() override;

  Error set(Input &In, const TensorView &Feature);
  /// Puts several features into one tensor, row by row.
  Error merge(Input &In, const SessionInput &What,
              Span<const TensorView> Features);
  Error setNumbers(Input &In, const TensorView &Feature);
  Error setStrings(Input &In, const TensorView &Feature);
  /// Makes the tensor anew: in memory of its own, or of \p Data.
  Error make(Input &In, const TensorView &Feature, const void *Data);
  Error evaluate();
  /// Runs the session, and owns what comes of it.
  Error run();
  void forgetOutputs();
  /// Shows a copy of \p Feature, whose memory the caller may have back.
  static void handThrough(const TensorView &Feature, Output &Out,
                          TensorView &View);
  /// Says in Views what \p Out, which is new, is.
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
  /// The outputs as features' equals.
  std::vector<TensorView> Views;
  /// The outputs that ONNX Runtime is asked for.
  std::vector<std::size_t> Computed;
  /// What Run takes.
  std::vector<const char *> InputNames, OutputNames;
  std::vector<const OrtValue *> InputValues;
  std::vector<OrtValue *> OutputValues;
  /// Whether an input has another shape than the outputs were made for.
  bool ShapesChanged = false;
  /// Whether outputs depend on the inputs' shapes only, as far as is known.
  bool KeepOutputs = true;
  /// Of the evaluation under way.
  Deadline Until = Deadline::never();
  /// Last, so that nothing is interrupted any more when the rest goes.
  inprocess::Watch Clock{*this};
};

} // namespace MLBridge::onnx

#endif // MLBRIDGE_LIB_ONNX_ONNXCURSOR_H
