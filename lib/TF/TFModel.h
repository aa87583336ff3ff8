//===- TFModel.h - A loaded SavedModel --------------------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// TFModel: a session of TensorFlow. Any number of threads can run the session
/// at the same time. Each thread uses its own TFCursor.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LIB_TF_TFMODEL_H
#define MLBRIDGE_LIB_TF_TFMODEL_H

#include "InProcess/Watchdog.h"
#include "TF/SignatureReader.h"
#include "TF/TFRuntime.h"

#include <atomic>
#include <mutex>

namespace MLBridge::tf {

/// An open SavedModel.
struct OpenModel {
  Handle<TF_Graph> Graph;
  /// A session of the graph. The session must not outlive the graph. Many
  /// threads can run the session at the same time, although its type is not
  /// const.
  Handle<TF_Session> Session;
  Signature TheSignature;
  /// The tensors of the graph, in the order of TheSignature.Inputs and
  /// TheSignature.Outputs.
  std::vector<TF_Output> InputPlaces, OutputPlaces;
  /// True once the session has been closed. TensorFlow's C API can interrupt an
  /// evaluation only by closing the session. Closing also ends the evaluations
  /// of other threads.
  std::atomic<bool> IsClosed = false;
};

class TFModel final : public Model {
public:
  static Expected<std::shared_ptr<const Model>>
  load(const std::string &Folder, const TFOptions &Options,
       std::shared_ptr<const Runtime> Library);

  Expected<std::unique_ptr<ModelCursor>> open() const override;

  const Runtime &runtime() const { return *Library; }
  /// Returns the model with an open session. If the session has been closed,
  /// opens the folder again.
  Expected<std::shared_ptr<OpenModel>> opened() const;

private:
  TFModel(std::string Name, std::string Folder, TFOptions Options,
          std::shared_ptr<const Runtime> Library,
          std::shared_ptr<OpenModel> Opened);

  const std::string Folder;
  const TFOptions Options;
  const std::shared_ptr<const Runtime> Library;
  mutable std::mutex Mutex;
  mutable std::shared_ptr<OpenModel> Current;
};

/// The tensors of one thread's requests. The inputs are reused while their
/// shapes stay the same. The outputs are the results of the last request.
class TFCursor final : public ModelCursor, inprocess::Interruptible {
public:
  TFCursor(std::shared_ptr<const TFModel> M, std::shared_ptr<OpenModel> Opened);

  Expected<Span<const TensorView>>
  run(Span<const TensorView> Features) override;
  Expected<Span<const TensorView>> runUntil(Span<const TensorView> Features,
                                            Deadline Until) override;

private:
  struct Input {
    Handle<TF_Tensor> Value;
    Shape Dims;
  };

  void interrupt() override;
  void resume() override {}

  Error set(std::size_t I, const TensorView &Feature);
  /// Evaluates the model. Tries again if the session was closed because another
  /// thread's deadline expired.
  Error evaluate(Deadline Until);
  /// Runs the session, and takes ownership of the outputs. Sets \p WasLate if
  /// the deadline passed first.
  Error runSession(Deadline Until, bool &WasLate);
  /// Describes output \p I in Views.
  Error updateView(std::size_t I);

  const std::shared_ptr<const TFModel> M;
  const Runtime &API;
  /// The status objects. Only the interrupting thread uses ClosingStatus.
  const Handle<TF_Status> Status, ClosingStatus;
  std::shared_ptr<OpenModel> Opened;

  std::vector<Input> Inputs;
  std::vector<Handle<TF_Tensor>> Outputs;
  std::vector<TensorView> Views;
  /// The arguments of TF_SessionRun.
  std::vector<TF_Tensor *> InputValues, OutputValues;
  /// Declared last, so that it is destroyed first. Therefore, no interruption
  /// can use destroyed members.
  inprocess::Watch Clock{*this};
};

} // namespace MLBridge::tf

#endif // MLBRIDGE_LIB_TF_TFMODEL_H
